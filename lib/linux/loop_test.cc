#include "lib/linux/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "lib/base/file.h"

namespace keelson::linux {
namespace {

class LoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/var/tmp/loop_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    file_ = dir_ + "/file";
    ASSERT_TRUE(WriteFile(file_, std::string(1 << 20, 'x')));
  }
  void TearDown() override {
    for (const LoopDevice& device : LoopDevicesOf(file_).value_or(std::vector<LoopDevice>())) {
      EXPECT_TRUE(DetachLoop(device.path));
    }
    EXPECT_TRUE(RemoveTree(dir_));
  }
  static uint64_t SizeOf(const std::string& device) {
    uint64_t size = 0;
    UniqueFd fd = *OpenFile(device, O_RDONLY);
    EXPECT_EQ(::ioctl(fd.get(), BLKGETSIZE64, &size), 0);
    return size;
  }
  std::string dir_, file_;
};

TEST_F(LoopTest, AttachesFindsAndDetaches) {
  auto loop = AttachLoop(file_, {.read_only = true});
  ASSERT_TRUE(loop) << loop.error().message();
  loop->fd.Reset();
  auto found = LoopDevicesOf(file_);
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().path, loop->path);
  EXPECT_EQ(found->front().file, file_);
  EXPECT_TRUE(found->front().read_only);
  EXPECT_FALSE(found->front().autoclear);
  EXPECT_FALSE(WriteFile(loop->path, "x"));
  ASSERT_TRUE(DetachLoop(loop->path));
  EXPECT_TRUE(DetachLoop(loop->path));
  EXPECT_TRUE(LoopDevicesOf(file_)->empty());
}

TEST_F(LoopTest, AutoclearEndsWithTheLastDescriptor) {
  auto loop = AttachLoop(file_, {.autoclear = true});
  ASSERT_TRUE(loop) << loop.error().message();
  ASSERT_EQ(LoopDevicesOf(file_)->size(), 1u);
  EXPECT_TRUE(LoopDevicesOf(file_)->front().autoclear);
  loop->fd.Reset();
  EXPECT_TRUE(LoopDevicesOf(file_)->empty());
}

TEST_F(LoopTest, TakesTheFilesNewSize) {
  auto loop = AttachLoop(file_, {.autoclear = true});
  ASSERT_TRUE(loop) << loop.error().message();
  EXPECT_EQ(SizeOf(loop->path), uint64_t{1} << 20);
  ASSERT_EQ(::truncate(file_.c_str(), 2 << 20), 0);
  ASSERT_TRUE(ReloadLoopSize(loop->path));
  EXPECT_EQ(SizeOf(loop->path), uint64_t{2} << 20);
}

TEST_F(LoopTest, AnAbsentFileIsNotFound) {
  EXPECT_EQ(LoopDevicesOf(dir_ + "/other").error().code(), Code::kNotFound);
  EXPECT_EQ(AttachLoop(dir_ + "/other", {}).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace keelson::linux
