#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kubelet/volume/plugin.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

// A volume with a folder, a file and a link out of it; its group is one that also an ordinary user may give.
class OwnershipTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ownership_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    ASSERT_TRUE(MakeDirs(dir_ + "/volume/folder", 0700));
    ASSERT_TRUE(WriteFile(dir_ + "/volume/folder/file", "", 0600));
    ASSERT_TRUE(WriteFile(dir_ + "/outside", "", 0600));
    ASSERT_EQ(::symlink((dir_ + "/outside").c_str(), (dir_ + "/volume/link").c_str()), 0);
    ASSERT_EQ(::chmod((dir_ + "/volume").c_str(), 0700), 0);
    pod_.mutable_spec()->mutable_security_context()->set_fs_group(::getegid());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }
  mode_t ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(::stat((dir_ + path).c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  void Policy(const std::string& policy) {
    pod_.mutable_spec()->mutable_security_context()->set_fs_group_change_policy(policy);
  }

  std::string dir_;
  corev1::Pod pod_;
};

TEST_F(OwnershipTest, TheGroupMayDoWhatTheOwnerMay) {
  ASSERT_TRUE(SetOwnership(dir_ + "/volume", pod_, false));
  EXPECT_EQ(ModeOf("/volume"), 02770u);
  EXPECT_EQ(ModeOf("/volume/folder"), 02770u);
  EXPECT_EQ(ModeOf("/volume/folder/file"), 0660u);
  EXPECT_EQ(ModeOf("/outside"), 0600u) << "behind a link";
}

TEST_F(OwnershipTest, OrReadIt) {
  ASSERT_TRUE(SetOwnership(dir_ + "/volume", pod_, true));
  EXPECT_EQ(ModeOf("/volume/folder"), 02750u);
  EXPECT_EQ(ModeOf("/volume/folder/file"), 0640u);
}

TEST_F(OwnershipTest, WithoutAGroupNothingChanges) {
  pod_.clear_spec();
  ASSERT_TRUE(SetOwnership(dir_ + "/volume", pod_, false));
  EXPECT_EQ(ModeOf("/volume"), 0700u);
}

TEST_F(OwnershipTest, OnRootMismatchGoesByTheTop) {
  Policy("OnRootMismatch");
  ASSERT_TRUE(SetOwnership(dir_ + "/volume", pod_, false));
  EXPECT_EQ(ModeOf("/volume/folder/file"), 0660u) << "the top was another's";
  ASSERT_EQ(::chmod((dir_ + "/volume/folder/file").c_str(), 0600), 0);
  ASSERT_TRUE(SetOwnership(dir_ + "/volume", pod_, false));
  EXPECT_EQ(ModeOf("/volume/folder/file"), 0600u) << "the top is as it should be";
  Policy("Always");
  ASSERT_TRUE(SetOwnership(dir_ + "/volume", pod_, false));
  EXPECT_EQ(ModeOf("/volume/folder/file"), 0660u);
}

}  // namespace
}  // namespace keelson::kubelet
