#include "csi/local/host/target.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

class TargetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/var/tmp/target_test.XXXXXX";
    dir_ = ::mkdtemp(name);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }
  std::string dir_;
};

TEST_F(TargetTest, MakesAndRemovesAgain) {
  for (TargetType type : {TargetType::kDirectory, TargetType::kFile}) {
    const std::string target = dir_ + "/target";
    EXPECT_TRUE(MakeTarget(target, type));
    EXPECT_TRUE(MakeTarget(target, type));
    EXPECT_EQ(std::filesystem::is_directory(target), type == TargetType::kDirectory);
    EXPECT_TRUE(RemoveTarget(target));
    EXPECT_FALSE(PathExists(target));
    EXPECT_TRUE(RemoveTarget(target));
  }
  EXPECT_TRUE(RemoveTarget(dir_ + "/no/such/directory"));
}

TEST_F(TargetTest, ContentIsKept) {
  ASSERT_TRUE(MakeDirs(dir_ + "/full"));
  ASSERT_TRUE(WriteFile(dir_ + "/full/file", "x"));
  EXPECT_EQ(RemoveTarget(dir_ + "/full").error().code(), Code::kConflict);
  EXPECT_EQ(RemoveTarget(dir_ + "/full/file").error().code(), Code::kConflict);
  EXPECT_EQ(*ReadFile(dir_ + "/full/file"), "x");
}

TEST_F(TargetTest, AnotherTypeIsRefused) {
  ASSERT_TRUE(WriteFile(dir_ + "/file", ""));
  EXPECT_EQ(MakeTarget(dir_ + "/file", TargetType::kDirectory).error().code(), Code::kConflict);
  EXPECT_EQ(MakeTarget(dir_, TargetType::kFile).error().code(), Code::kConflict);
  EXPECT_EQ(MakeTarget(dir_ + "/none/target", TargetType::kDirectory).error().code(), Code::kConflict);
}

TEST_F(TargetTest, NoPartIsALink) {
  ASSERT_TRUE(MakeDirs(dir_ + "/real"));
  ASSERT_EQ(::symlink("real", (dir_ + "/link").c_str()), 0);
  for (const std::string& path : {dir_ + "/link", dir_ + "/link/target", dir_ + "/real/../real/target",
                                  std::string("some/path"), std::string("/")}) {
    for (TargetType type : {TargetType::kDirectory, TargetType::kFile}) {
      EXPECT_EQ(MakeTarget(path, type).error().code(), Code::kInvalid) << path;
    }
    EXPECT_EQ(RemoveTarget(path).error().code(), Code::kInvalid) << path;
    EXPECT_EQ(CheckDirectory(path).error().code(), Code::kInvalid) << path;
  }
  EXPECT_TRUE(CheckDirectory(dir_ + "/real"));
  EXPECT_EQ(CheckDirectory(dir_ + "/none").error().code(), Code::kInvalid);
  EXPECT_TRUE(PathExists(dir_ + "/link"));
}

}  // namespace
}  // namespace keelson::csi::local
