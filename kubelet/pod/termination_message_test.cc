#include "kubelet/pod/termination_message.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "kubelet/container/labels.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

class TerminationMessageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/termination_message.XXXXXX";
    dir_ = ::mkdtemp(name);
    record_.annotations[kMessagePathAnnotation] = "/dev/termination-log";
    record_.mounts.push_back({.container_path = "/dev/termination-log", .host_path = dir_ + "/message"});
    record_.log_path = dir_ + "/log";
    record_.exit_code = 1;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(dir_ + "/" + name, text));
  }
  std::string FromLog() {
    record_.annotations[kMessagePolicyAnnotation] = "FallbackToLogsOnError";
    return TerminationMessage(record_);
  }
  std::string dir_;
  ContainerRecord record_;
};

TEST_F(TerminationMessageTest, IsTheFileOfItsPath) {
  EXPECT_EQ(TerminationMessage(record_), "");
  Write("message", "done");
  EXPECT_EQ(TerminationMessage(record_), "done");
  Write("message", std::string(5000, 'x'));
  EXPECT_EQ(TerminationMessage(record_), std::string(4096, 'x'));
  record_.annotations[kMessagePathAnnotation] = "/elsewhere";
  EXPECT_EQ(TerminationMessage(record_), "");
}

TEST_F(TerminationMessageTest, LinksLeadNowhere) {
  Write("secret", "of the node");
  ASSERT_EQ(::symlink((dir_ + "/secret").c_str(), (dir_ + "/message").c_str()), 0);
  EXPECT_EQ(TerminationMessage(record_), "");
}

TEST_F(TerminationMessageTest, TheLogsEndStandsInAfterAFailure) {
  Write("log",
        "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:00Z stderr P tw\n2026-01-01T00:00:00Z stderr F "
        "o\n");
  EXPECT_EQ(TerminationMessage(record_), "") << "only where the policy says so";
  EXPECT_EQ(FromLog(), "one\ntwo\n");
  record_.exit_code = 0;
  EXPECT_EQ(FromLog(), "") << "it went well";
  record_.exit_code = 1;
  Write("message", "own words");
  EXPECT_EQ(FromLog(), "own words");
}

TEST_F(TerminationMessageTest, OfTheLogNoMoreThanItsEnd) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "2026-01-01T00:00:00Z stdout F " + std::to_string(i) + "\n";
  Write("log", text);
  const std::string message = FromLog();
  EXPECT_EQ(message.rfind("20\n21\n", 0), 0u) << "80 lines: " << message;
  EXPECT_EQ(message.substr(message.size() - 3), "99\n");
  Write("log", "2026-01-01T00:00:00Z stdout F " + std::string(5000, 'y') + "z\n");
  EXPECT_EQ(FromLog(), std::string(2046, 'y') + "z\n");
}

}  // namespace
}  // namespace keelson::kubelet
