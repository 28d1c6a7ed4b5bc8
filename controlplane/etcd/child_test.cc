#include "controlplane/etcd/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "lib/base/file.h"

namespace keelson::etcd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Child, HasTheEnvironmentButWhatSystemdGaveItsParent) {
  char name[] = "/tmp/child.XXXXXX";
  const std::string directory = mkdtemp(name);
  setenv("NOTIFY_SOCKET", "/run/systemd/notify", 1);
  setenv("WATCHDOG_USEC", "60000000", 1);
  setenv("ETCD_SNAPSHOT_COUNT", "7", 1);
  auto child = Child::Start({"env"}, directory, directory + "/log");
  for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "ETCD_SNAPSHOT_COUNT"}) unsetenv(variable);
  ASSERT_TRUE(child) << child.error().message();
  EXPECT_EQ(child->Wait(), "exited with 0");
  auto log = ReadFile(directory + "/log");
  ASSERT_TRUE(log);
  EXPECT_THAT(*log, HasSubstr("ETCD_SNAPSHOT_COUNT=7"));
  EXPECT_THAT(*log, Not(HasSubstr("NOTIFY_SOCKET")));
  EXPECT_THAT(*log, Not(HasSubstr("WATCHDOG_USEC")));
  EXPECT_TRUE(RemoveTree(directory));
}

}  // namespace
}  // namespace keelson::etcd
