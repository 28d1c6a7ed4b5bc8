#include "proxy/config/config_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "lib/base/file.h"
#include "lib/base/mutex.h"

namespace keelson::proxy {
namespace {

class FollowFileTest : public ::testing::Test {
 protected:
  FollowFileTest() : path_(::testing::TempDir() + "/follow-" + std::to_string(::getpid())) {}
  ~FollowFileTest() override { ::unlink(path_.c_str()); }

  // In place, as an editor may do it, a piece at a time; or by another file that takes the name.
  void Write(const std::string& text, bool in_place) {
    if (!in_place) {
      ASSERT_TRUE(WriteFileAtomic(path_, text));
      return;
    }
    std::ofstream out(path_);
    for (char c : text) out << c << std::flush;
  }
  bool AwaitRead(const std::string& text) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    MutexLock lock(mutex_);
    while (last_ != text) {
      if (read_.wait_until(mutex_, limit) == std::cv_status::timeout) return last_ == text;
    }
    return true;
  }
  Result<> Look() {
    MutexLock lock(mutex_);
    last_ = ReadFile(path_).value_or("");
    read_.notify_all();
    return last_ == "end" ? Result<>(Error(Code::kUnavailable, "the end")) : Result<>();
  }

  const std::string path_;
  Mutex mutex_;
  CondVar read_;
  std::string last_ KEELSON_GUARDED_BY(mutex_);
};

TEST_F(FollowFileTest, TellsOfEveryChangeUntilOneIsNotForIt) {
  Write("first", false);
  Result<> ended;
  std::jthread follower(
      [this, &ended](std::stop_token stop) { ended = FollowFile(path_, stop, [this] { return Look(); }); });
  EXPECT_TRUE(AwaitRead("first"));
  bool in_place = true;
  for (const char* text : {"second", "third", "fourth", "fifth", "end"}) {
    Write(text, in_place);
    EXPECT_TRUE(AwaitRead(text)) << text;
    in_place = !in_place;
  }
  follower.join();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message(), "the end");
}

TEST_F(FollowFileTest, EndsWhenAskedTo) {
  Write("first", false);
  std::jthread follower(
      [this](std::stop_token stop) { EXPECT_TRUE(FollowFile(path_, stop, [] { return Result<>(); })); });
}

}  // namespace
}  // namespace keelson::proxy
