#include "ctl/cri/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "ctl/cri/terminal.h"
#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

constexpr char kLog[] =
    "2026-01-01T00:00:01.5Z stdout F one\n"
    "2026-01-01T00:00:02.25Z stderr F two\n"
    "2026-01-01T00:00:03Z stdout P thr\n"
    "2026-01-01T00:00:03.1Z stdout F ee\n";

class LogFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ctl_log_file.XXXXXX";
    dir_ = ::mkdtemp(name);
    path_ = dir_ + "/0.log";
    ASSERT_TRUE(WriteFile(path_, kLog));
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }

  std::string Read(
      const LogChoice& choice, const std::function<bool()>& alive = [] { return false; }) {
    std::string out;
    const auto print = [&](const LogPrinter::Output& one) {
      out += (one.is_stderr ? "E:" : "O:") + one.text;
    };
    const Result<> done = PrintLog(path_, choice, print, alive);
    return done ? out : "error: " + done.error().message();
  }
  std::string dir_, path_;
};

TEST_F(LogFileTest, ChoosesByLinesBytesAndTime) {
  EXPECT_EQ(Read({}), "O:one\nE:two\nO:thrO:ee\n");
  EXPECT_EQ(Read({.tail = 2}), "O:thrO:ee\n");
  EXPECT_EQ(Read({.tail = 9}), "O:one\nE:two\nO:thrO:ee\n");
  EXPECT_EQ(Read({.tail = 0}), "");
  EXPECT_EQ(Read({.limit_bytes = 6}), "O:one\nE:tw");
  const auto since = ParseSince("2026-01-01T00:00:02Z", {});
  ASSERT_TRUE(since);
  EXPECT_EQ(Read({.since = *since}), "E:two\nO:thrO:ee\n");
  EXPECT_EQ(Read({.timestamps = true, .tail = 2}), "O:2026-01-01T00:00:03.000000000Z thrO:ee\n");
}

TEST_F(LogFileTest, FollowsAcrossARotation) {
  int asked = 0;
  const auto alive = [&] {
    if (++asked == 1) {
      EXPECT_TRUE(WriteFile(path_, std::string(kLog) + "2026-01-01T00:00:04Z stdout F four\n"));
    } else if (asked == 2) {
      EXPECT_EQ(::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
      EXPECT_TRUE(WriteFile(path_, "2026-01-01T00:00:05Z stdout F five\n"));
    }
    return asked < 3;
  };
  EXPECT_EQ(Read({}, alive), "O:one\nE:two\nO:thrO:ee\nO:four\nO:five\n");
}

TEST_F(LogFileTest, RefusesAnotherFormat) {
  ASSERT_TRUE(WriteFile(path_, "hello\n"));
  EXPECT_EQ(Read({}), "error: \"hello\" is not a line of a CRI log");
  path_ += ".gone";
  EXPECT_TRUE(Read({}).starts_with("error: "));
}

TEST(LogSinceTest, TimesAndDurations) {
  const WallTime now{std::chrono::seconds(1000)};
  EXPECT_EQ(*ParseSince("1m", now), int64_t{940} * 1000000000);
  EXPECT_EQ(*ParseSince("1970-01-01T00:01:00.5Z", now), 60500000000);
  EXPECT_EQ(*ParseSince("1970-01-01T01:01:00+01:00", now), int64_t{60} * 1000000000);
  EXPECT_EQ(*ParseSince("77", now), int64_t{77} * 1000000000);
  EXPECT_FALSE(ParseSince("yesterday", now));
}

TEST(DetachKeysTest, FindsThemAcrossReads) {
  DetachKeys keys;
  EXPECT_EQ(keys.Filter("ls\x10"), "ls");
  EXPECT_EQ(keys.Filter("\x10x"), "\x10\x10x");
  EXPECT_FALSE(keys.detached());
  EXPECT_EQ(keys.Filter("a\x10"), "a");
  EXPECT_EQ(keys.Filter("\x11more"), "");
  EXPECT_TRUE(keys.detached());
}

}  // namespace
}  // namespace keelson::ctl
