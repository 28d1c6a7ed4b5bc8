#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "kubelet/server/log_follower.h"
#include "lib/base/file.h"

namespace keelson::kubelet::server {
namespace {

// Takes what a handler writes.
class Recorder : public http::ResponseWriter {
 public:
  void Reply(int, http::Headers, std::string) override {}
  void ReplyShared(int, http::Headers, std::vector<std::shared_ptr<const std::string>>) override {}
  void Start(int status, http::Headers) override { EXPECT_EQ(status, 200); }
  bool Write(std::shared_ptr<const std::string> data) override {
    std::lock_guard lock(mutex_);
    text_ += *data;
    changed_.notify_all();
    return !closed_;
  }
  void Finish() override {
    std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }
  size_t queued_bytes() const override { return queued; }
  void OnClose(std::function<void()>) override {}
  bool closed() const override { return closed_; }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers) override {
    return Error(Code::kBadRequest, "");
  }

  bool Await(const std::string& text, bool finished = false) {
    std::unique_lock lock(mutex_);
    bool there = changed_.wait_for(lock, std::chrono::seconds(10),
                                   [&] { return text_ == text && finished_ == finished; });
    if (!there) ADD_FAILURE() << "got: " << text_ << (finished_ ? " (end)" : "") << "\nwanted: " << text;
    return there;
  }
  std::string text() {
    std::lock_guard lock(mutex_);
    return text_;
  }
  void Leave() { closed_ = true; }
  std::atomic<size_t> queued{0};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  bool finished_ = false;
  std::atomic<bool> closed_{false};
};

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    char name[] = "/tmp/log_test.XXXXXX";
    dir_ = mkdtemp(name);
    path_ = dir_ + "/0.log";
  }
  ~LogTest() override { EXPECT_TRUE(RemoveTree(dir_)); }
  void Append(const std::string& text) {
    auto fd = OpenFile(path_, O_WRONLY | O_CREAT | O_APPEND);
    ASSERT_TRUE(fd);
    ASSERT_TRUE(WriteAll(fd->get(), text, path_));
  }
  std::string Read(const LogOptions& options) {
    auto recorder = std::make_shared<Recorder>();
    LogSession session(options, path_, recorder);
    EXPECT_EQ(session.Pump(), LogSession::State::kDone);
    return recorder->text();
  }
  std::string dir_, path_;
};

TEST(LogLine, Parses) {
  auto full = ParseLogLine("2026-01-01T00:00:00.5Z stdout F hello world");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->text, "hello world");
  EXPECT_FALSE(full->partial);
  EXPECT_FALSE(full->is_stderr);
  auto part = ParseLogLine("2026-01-01T00:00:00.5Z stderr P:x ");
  ASSERT_TRUE(part);
  EXPECT_TRUE(part->partial);
  EXPECT_TRUE(part->is_stderr);
  EXPECT_EQ(part->text, "");
  for (const char* bad : {"", "x", "x stdout", "x stdout F", "x other F text"}) {
    EXPECT_FALSE(ParseLogLine(bad)) << bad;
  }
}

TEST(LogLine, Times) {
  EXPECT_EQ(ParseRfc3339("1970-01-01T00:00:01Z"), 1000000000);
  EXPECT_EQ(ParseRfc3339("1970-01-01T00:00:01.25Z"), 1250000000);
  EXPECT_EQ(ParseRfc3339("1970-01-01T02:00:00.000000001+02:00"), 1);
  for (const char* bad : {"", "1970", "1970-01-01 00:00:00Z", "1970-01-01T00:00:00", "1970-01-01T00:00:00.Z",
                          "1970-13-01T00:00:00Z"}) {
    EXPECT_FALSE(ParseRfc3339(bad)) << bad;
  }
  EXPECT_EQ(FixedTimestamp("2026-01-01T00:00:00.5Z"), "2026-01-01T00:00:00.500000000Z");
  EXPECT_EQ(FixedTimestamp("2026-01-01T00:00:00+01:00"), "2026-01-01T00:00:00.000000000+01:00");
}

TEST(LogLine, Options) {
  auto parse = [](const char* query) {
    return ParseLogOptions(http::Query::Parse(query), 100 * int64_t{1000000000});
  };
  auto all =
      parse("follow=true&timestamps=1&tailLines=5&limitBytes=9&sinceSeconds=40&previous=yes&stream=All");
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->follow && all->timestamps && all->previous && all->err && all->out);
  EXPECT_TRUE(parse("stream=Stderr")->err && !parse("stream=Stderr")->out);
  for (const char* off : {"follow=0", "follow=false", "follow=False", "x=1"}) {
    EXPECT_FALSE(parse(off)->follow);
  }
  for (const char* on : {"follow=1", "follow", "follow=", "follow=yes"}) EXPECT_TRUE(parse(on)->follow) << on;
  EXPECT_EQ(all->tail_lines, 5);
  EXPECT_EQ(all->limit_bytes, 9);
  EXPECT_EQ(all->since, 60 * int64_t{1000000000});
  EXPECT_EQ(parse("tail=3")->tail_lines, 3);
  EXPECT_FALSE(parse("tail=all")->tail_lines);
  EXPECT_EQ(parse("sinceTime=1970-01-01T00:00:01Z")->since, 1000000000);
  for (const char* bad : {"tailLines=x", "limitBytes=1k", "sinceTime=yesterday"}) {
    EXPECT_TRUE(parse(bad).error().Is(Code::kBadRequest)) << bad;
  }
  for (const char* bad :
       {"tailLines=-1", "limitBytes=0", "sinceSeconds=0", "sinceSeconds=1&sinceTime=1970-01-01T00:00:01Z",
        "stream=x", "stream=Stdout&tailLines=1"}) {
    EXPECT_TRUE(parse(bad).error().Is(Code::kInvalid)) << bad;
  }
}

TEST_F(LogTest, SelectsWhatWasAskedFor) {
  Append(
      "2026-01-01T00:00:01Z stdout F one\n"
      "2026-01-01T00:00:02Z stderr F two\n"
      "rubbish\n"
      "2026-01-01T00:00:03Z stdout P thr\n"
      "2026-01-01T00:00:03.5Z stdout F ee\n"
      "2026-01-01T00:00:04Z stdout F four\n"
      "2026-01-01T00:00:05Z stdout F cut off");
  EXPECT_EQ(Read({}), "one\ntwo\nthree\nfour\n");
  LogOptions options;
  options.timestamps = true;
  options.tail_lines = 3;
  EXPECT_EQ(Read(options), "2026-01-01T00:00:03.500000000Z ee\n2026-01-01T00:00:04.000000000Z four\n");
  options.tail_lines = 4;
  EXPECT_EQ(Read(options), "2026-01-01T00:00:03.000000000Z three\n2026-01-01T00:00:04.000000000Z four\n");
  options.tail_lines = 0;
  EXPECT_EQ(Read(options), "");
  options = {};
  options.tail_lines = 100;
  EXPECT_EQ(Read(options), "one\ntwo\nthree\nfour\n");
  options = {};
  options.limit_bytes = 6;
  EXPECT_EQ(Read(options), "one\ntw");
  options = {};
  options.since = ParseRfc3339("2026-01-01T00:00:03.2Z");
  EXPECT_EQ(Read(options), "ee\nfour\n");
  options = {};
  options.out = false;
  EXPECT_EQ(Read(options), "two\n");
}

// A container that can write to the log directory cannot make the server read other files of the node.
TEST_F(LogTest, LinksAndPipesAreNoLogs) {
  const std::string line = "2026-01-01T00:00:01Z stdout F secret\n";
  ASSERT_TRUE(MakeDirs(dir_ + "/other"));
  ASSERT_TRUE(MakeDirs(dir_ + "/pod/main"));
  ASSERT_TRUE(WriteFile(dir_ + "/other/0.log", line));
  ASSERT_EQ(::symlink("../../other/0.log", (dir_ + "/pod/main/0.log").c_str()), 0);
  ASSERT_EQ(::symlink("../other", (dir_ + "/pod/linked").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir_ + "/pod/main/1.log").c_str(), 0600), 0);
  for (const char* name :
       {"/pod/main/0.log", "/pod/linked/0.log", "/pod/main/1.log", "/pod/main", "/absent"}) {
    path_ = dir_ + name;
    EXPECT_EQ(Read({}), "") << name;
  }
  path_ = dir_ + "/other/0.log";
  EXPECT_EQ(Read({}), "secret\n");
}

TEST_F(LogTest, TailOfLargeFileAndMissingFile) {
  EXPECT_EQ(Read({}), "");
  std::string all;
  for (int i = 0; i < 5000; ++i) all += "2026-01-01T00:00:01Z stdout F line " + std::to_string(i) + "\n";
  Append(all);
  LogOptions options;
  options.tail_lines = 2;
  EXPECT_EQ(Read(options), "line 4998\nline 4999\n");
  options.tail_lines = 4999;
  EXPECT_EQ(Read(options).substr(0, 7), "line 1\n");
}

TEST_F(LogTest, SlowClientsHoldTheFileBack) {
  Append("2026-01-01T00:00:01Z stdout F one\n");
  auto recorder = std::make_shared<Recorder>();
  LogSession session({}, path_, recorder);
  recorder->queued = 2 << 20;
  EXPECT_EQ(session.Pump(), LogSession::State::kBehind);
  EXPECT_EQ(recorder->text(), "");
  recorder->queued = 0;
  EXPECT_EQ(session.Pump(), LogSession::State::kDone);
  EXPECT_EQ(recorder->text(), "one\n");
}

TEST_F(LogTest, FollowsThroughRotationUntilTheContainerEnds) {
  Append("2026-01-01T00:00:01Z stdout F one\n");
  auto recorder = std::make_shared<Recorder>(), left = std::make_shared<Recorder>();
  std::atomic<bool> running{true};
  LogFollower follower;
  LogOptions options;
  options.follow = true;
  auto add = [&](const std::shared_ptr<Recorder>& to) {
    auto session = std::make_unique<LogSession>(options, path_, to);
    EXPECT_EQ(session->Pump(), LogSession::State::kWaiting);
    follower.Add(std::move(session), [&] { return running.load(); });
  };
  add(recorder);
  add(left);
  ASSERT_TRUE(recorder->Await("one\n"));
  left->Leave();
  Append("2026-01-01T00:00:02Z stdout F tw");
  Append("o\n");
  ASSERT_TRUE(recorder->Await("one\ntwo\n"));
  // Rotation: renamed, written a little longer, then a new file.
  std::string old = path_ + ".20260101";
  ASSERT_EQ(rename(path_.c_str(), old.c_str()), 0);
  std::swap(path_, old);
  Append("2026-01-01T00:00:03Z stdout F three\n");
  std::swap(path_, old);
  Append("2026-01-01T00:00:04Z stdout F four\n");
  ASSERT_TRUE(recorder->Await("one\ntwo\nthree\nfour\n"));
  running = false;
  Append("2026-01-01T00:00:05Z stdout F five\n");
  ASSERT_TRUE(recorder->Await("one\ntwo\nthree\nfour\nfive\n", true));
  EXPECT_EQ(left->text(), "one\n");
  // The thread has ended; another one carries on.
  running = true;
  auto again = std::make_shared<Recorder>();
  auto session = std::make_unique<LogSession>(options, path_, again);
  follower.Add(std::move(session), [&] { return running.load(); });
  ASSERT_TRUE(again->Await("four\nfive\n"));
}

}  // namespace
}  // namespace keelson::kubelet::server
