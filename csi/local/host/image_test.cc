#include "csi/local/host/image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

constexpr int64_t kMi = 1 << 20;

class ImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/var/tmp/image_test.XXXXXX";
    dir_ = ::mkdtemp(name);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }
  static void Write(const std::string& path, int64_t at, const std::string& data) {
    UniqueFd fd = *OpenFile(path, O_WRONLY);
    ASSERT_EQ(::pwrite(fd.get(), data.data(), data.size(), at), static_cast<ssize_t>(data.size()));
    ASSERT_EQ(::fsync(fd.get()), 0);
  }
  static std::string Read(const std::string& path, int64_t at, size_t count) {
    std::string data(count, '?');
    UniqueFd fd = *OpenFile(path, O_RDONLY);
    EXPECT_EQ(::pread(fd.get(), data.data(), count, at), static_cast<ssize_t>(count));
    return data;
  }
  static bool Never() { return false; }
  std::string dir_;
};

TEST_F(ImageTest, AThinOneTakesNothing) {
  ASSERT_TRUE(MakeImage(dir_ + "/a", 64 * kMi, false));
  auto size = SizeOf(dir_ + "/a");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->size, 64 * kMi);
  EXPECT_LT(size->taken, kMi);
  EXPECT_TRUE(*IsZeros(dir_ + "/a"));
  EXPECT_EQ(MakeImage(dir_ + "/a", kMi, false).error().code(), Code::kAlreadyExists);
}

TEST_F(ImageTest, AThickOneTakesAll) {
  ASSERT_TRUE(MakeImage(dir_ + "/a", 8 * kMi, true));
  EXPECT_GE(SizeOf(dir_ + "/a")->taken, 8 * kMi);
  EXPECT_TRUE(*IsZeros(dir_ + "/a"));
  ASSERT_TRUE(GrowImage(dir_ + "/a", 16 * kMi, true));
  EXPECT_GE(SizeOf(dir_ + "/a")->taken, 16 * kMi);
}

TEST_F(ImageTest, GrowsAndNeverShrinks) {
  ASSERT_TRUE(MakeImage(dir_ + "/a", 8 * kMi, false));
  Write(dir_ + "/a", 7 * kMi, "end");
  ASSERT_TRUE(GrowImage(dir_ + "/a", 16 * kMi, false));
  EXPECT_EQ(SizeOf(dir_ + "/a")->size, 16 * kMi);
  ASSERT_TRUE(GrowImage(dir_ + "/a", 4 * kMi, false));
  EXPECT_EQ(SizeOf(dir_ + "/a")->size, 16 * kMi);
  EXPECT_EQ(Read(dir_ + "/a", 7 * kMi, 3), "end");
}

TEST_F(ImageTest, CopiesDataAndHoles) {
  ASSERT_TRUE(MakeImage(dir_ + "/a", 256 * kMi, false));
  Write(dir_ + "/a", 0, "begin");
  Write(dir_ + "/a", 100 * kMi + 123, std::string(3 * kMi, 'm'));
  Write(dir_ + "/a", 256 * kMi - 3, "end");
  int n = 0;
  for (Copying copying : {Copying::kAny, Copying::kOwn}) {
    const std::string copy = dir_ + "/copy" + std::to_string(++n);
    auto copied = CopyImage(dir_ + "/a", copy, copying, Never);
    ASSERT_TRUE(copied) << copied.error().message();
    EXPECT_EQ(SizeOf(copy)->size, 256 * kMi);
    EXPECT_LT(SizeOf(copy)->taken, 16 * kMi);
    EXPECT_EQ(Read(copy, 0, 5), "begin");
    EXPECT_EQ(Read(copy, 100 * kMi + 123, 3 * kMi), std::string(3 * kMi, 'm'));
    EXPECT_EQ(Read(copy, 50 * kMi, 10), std::string(10, '\0'));
    EXPECT_EQ(Read(copy, 256 * kMi - 3, 3), "end");
    EXPECT_FALSE(*IsZeros(copy));
  }
}

TEST_F(ImageTest, ACopyIsStopped) {
  ASSERT_TRUE(MakeImage(dir_ + "/a", 8 * kMi, false));
  Write(dir_ + "/a", 0, "x");
  auto copied = CopyImage(dir_ + "/a", dir_ + "/b", Copying::kOwn, [] { return true; });
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code(), Code::kCancelled);
}

TEST_F(ImageTest, LinksAreNotFollowed) {
  ASSERT_TRUE(WriteFile(dir_ + "/secret", "x"));
  ASSERT_EQ(::symlink((dir_ + "/secret").c_str(), (dir_ + "/link").c_str()), 0);
  EXPECT_FALSE(SizeOf(dir_ + "/link"));
  EXPECT_FALSE(MakeImage(dir_ + "/link", kMi, false));
  EXPECT_FALSE(GrowImage(dir_ + "/link", kMi, false));
  EXPECT_FALSE(CopyImage(dir_ + "/link", dir_ + "/copy", Copying::kOwn, Never));
  EXPECT_EQ(*ReadFile(dir_ + "/secret"), "x");
}

TEST_F(ImageTest, RenamesOverAnOldOne) {
  ASSERT_TRUE(WriteFile(dir_ + "/new", "new"));
  ASSERT_TRUE(WriteFile(dir_ + "/old", "old"));
  ASSERT_TRUE(RenameForGood(dir_ + "/new", dir_ + "/old"));
  EXPECT_EQ(*ReadFile(dir_ + "/old"), "new");
  EXPECT_TRUE(RemoveForGood(dir_ + "/old"));
  EXPECT_TRUE(RemoveForGood(dir_ + "/old"));
}

}  // namespace
}  // namespace keelson::csi::local
