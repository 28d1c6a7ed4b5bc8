#include "lib/base/file.h"

#include <sys/stat.h>

#include <cstdlib>

#include <gtest/gtest.h>

namespace keelson {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "keelson-file-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }
  std::string dir_;
};

TEST_F(FileTest, AtomicWriteReplacesContentAndMode) {
  const std::string path = dir_ + "/f";
  ASSERT_TRUE(WriteFileAtomic(path, "one", 0644));
  ASSERT_TRUE(WriteFileAtomic(path, "two", 0600));
  EXPECT_EQ(*ReadFile(path), "two");
  struct stat st;
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_EQ(*ListDir(dir_), std::vector<std::string>{"f"}) << "no temporary file stays behind";
}

TEST_F(FileTest, FailedAtomicWriteLeavesNothing) {
  ASSERT_TRUE(MakeDirs(dir_ + "/target"));
  ASSERT_TRUE(WriteFile(dir_ + "/target/x", ""));
  EXPECT_FALSE(WriteFileAtomic(dir_ + "/target", "data")) << "a directory cannot be replaced by a file";
  EXPECT_EQ(*ListDir(dir_), std::vector<std::string>{"target"});
}

TEST_F(FileTest, MakeDirsIsIdempotentAndRefusesFiles) {
  EXPECT_TRUE(MakeDirs(dir_ + "/a/b/c"));
  EXPECT_TRUE(MakeDirs(dir_ + "/a/b/c"));
  ASSERT_TRUE(WriteFile(dir_ + "/file", ""));
  EXPECT_FALSE(MakeDirs(dir_ + "/file"));
}

TEST_F(FileTest, ReadOfAbsentFileNamesIt) {
  auto read = ReadFile(dir_ + "/absent");
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().Is(Code::kNotFound));
  EXPECT_EQ(read.error().message(), "open " + dir_ + "/absent: No such file or directory");
}

TEST_F(FileTest, RemoveTreeFollowsNoSymlink) {
  ASSERT_TRUE(MakeDirs(dir_ + "/keep"));
  ASSERT_TRUE(WriteFile(dir_ + "/keep/f", "x"));
  ASSERT_TRUE(MakeDirs(dir_ + "/tree"));
  ASSERT_EQ(symlink((dir_ + "/keep").c_str(), (dir_ + "/tree/link").c_str()), 0);
  EXPECT_TRUE(RemoveTree(dir_ + "/tree"));
  EXPECT_TRUE(PathExists(dir_ + "/keep/f"));
  EXPECT_TRUE(RemoveTree(dir_ + "/tree")) << "absent is fine";
}

}  // namespace
}  // namespace keelson
