// Real mounts, in a mount namespace of the test's own.
#include "kubelet/volume/mounter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

class MounterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      GTEST_SKIP() << "no mount namespace can be made: root is needed";
    }
    char name[] = "/tmp/mounter_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    ASSERT_TRUE(mounter_->MountTmpfs(dir_, "size=1m"));
  }
  void TearDown() override {
    if (dir_.empty()) return;
    (void)mounter_->Unmount(dir_, true);
    (void)RemoveTree(dir_);
  }
  std::string dir_;
  const std::unique_ptr<Mounter> mounter_ = NewMounter();
};

// Of any type: what is special about servers elsewhere is that they may not answer.
TEST_F(MounterTest, UnmountRemoteSaysWhyItCannot) {
  {
    auto used = OpenFile(dir_, O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(used);
    auto busy = mounter_->UnmountRemote(dir_, {});
    ASSERT_FALSE(busy);
    EXPECT_TRUE(busy.error().Is(Code::kUnavailable));
    EXPECT_EQ(busy.error().message().rfind(
                  "unmount failed: exit code 32\nUnmounting arguments: " + dir_ + "\nOutput: umount: ", 0),
              0u)
        << busy.error().message();
    EXPECT_TRUE(*mounter_->IsMountPoint(dir_));
  }
  auto done = mounter_->UnmountRemote(dir_, {});
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(mounter_->MountPointsUnder(dir_)->size(), 0u);
}

TEST_F(MounterTest, MountSaysWhyItCannot) {
  auto failed = mounter_->Mount("none", dir_ + "/absent", "tmpfs", {"size=1m", "noexec"}, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message().rfind(
                "mount failed: exit code 32\nMounting command: mount\nMounting arguments: "
                "-t tmpfs -o size=1m,noexec none " +
                    dir_ + "/absent\nOutput: mount: ",
                0),
            0u)
      << failed.error().message();
}

}  // namespace
}  // namespace keelson::kubelet
