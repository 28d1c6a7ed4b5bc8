// Images in files, which libblkid reads like devices. Their contents are written byte by byte, so that no
// mkfs program is needed.
#include "lib/linux/disk.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <vector>

#include "lib/base/file.h"

namespace keelson::linux {
namespace {

struct Bytes {
  size_t at;
  std::string bytes;
};

std::string Image(const std::vector<Bytes>& pieces) {
  std::string image(size_t{4} << 20, '\0');
  for (const Bytes& piece : pieces) image.replace(piece.at, piece.bytes.size(), piece.bytes);
  return image;
}

class DiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/disk_test.XXXXXX";
    dir_ = ::mkdtemp(name);
  }
  void TearDown() override { (void)RemoveTree(dir_); }
  Result<DiskContents> Probe(const std::string& image) {
    EXPECT_TRUE(WriteFile(dir_ + "/disk", image));
    return ProbeDisk(dir_ + "/disk");
  }
  std::string dir_;
};

using namespace std::string_literals;

// The superblock of ext2 begins at 1024; s_magic, s_log_block_size and s_rev_level identify it.
const Bytes kExt2{1024 + 56, "\x53\xef"s};
// Promises a checksum (metadata_csum) that is missing.
const Bytes kExt4Features{1024 + 100, "\0\x04\0\0"s};
const Bytes kSwap{4096 - 10, "SWAPSPACE2"s};
const Bytes kSwapVersion{1024, "\x01\0\0\0\xff\x03\0\0"s};
// A partition of type 0x83 from sector 2048 on, of 2048 sectors, and the table's mark.
const Bytes kDos{446, "\0\0\0\0\x83\0\0\0\0\x08\0\0\0\x08\0\0"s}, kDosMark{510, "\x55\xaa"s};

TEST_F(DiskTest, WhatIsThereIsSeen) {
  struct Case {
    const char* name;
    std::string image;
    std::string fs_type, partition_table;
  };
  for (const Case& c : {Case{"zeros", Image({}), "", ""},
                        {"noise that is of nobody", Image({{0, "hello"}, {70000, "world"}}), "", ""},
                        {"ext2", Image({kExt2}), "ext2", ""},
                        {"ext4 with a wrong checksum", Image({kExt2, kExt4Features}), "ext4", ""},
                        {"swap", Image({kSwap, kSwapVersion}), "swap", ""},
                        {"partitions", Image({kDos, kDosMark}), "", "dos"}}) {
    auto found = Probe(c.image);
    ASSERT_TRUE(found) << c.name << ": " << found.error().message();
    EXPECT_EQ(found->fs_type, c.fs_type) << c.name;
    EXPECT_EQ(found->partition_table, c.partition_table) << c.name;
    EXPECT_EQ(found->blank(), c.fs_type.empty() && c.partition_table.empty()) << c.name;
  }
}

TEST_F(DiskTest, WhatCannotBeToldIsNotBlank) {
  auto both = Probe(Image({kExt2, kSwap, kSwapVersion}));
  ASSERT_FALSE(both);
  EXPECT_TRUE(both.error().Is(Code::kInvalid)) << both.error().message();
  EXPECT_FALSE(Probe("")) << "a device of no size";
  auto absent = ProbeDisk(dir_ + "/absent");
  ASSERT_FALSE(absent);
  EXPECT_TRUE(absent.error().Is(Code::kNotFound)) << absent.error().message();
}

}  // namespace
}  // namespace keelson::linux
