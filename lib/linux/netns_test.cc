#include "lib/linux/netns.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/linux/sysctl.h"

namespace keelson::linux {
namespace {

TEST(NetNs, RunsBodyInsideAndLeavesTheCallerOutside) {
  auto outside = NetNs::OpenCurrent();
  ASSERT_TRUE(outside);
  auto made = NetNs::Make();
  if (!made && made.error().Is(Code::kForbidden)) GTEST_SKIP() << made.error().message();
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_NE(made->inode(), outside->inode());
  uint64_t inside = 0;
  auto ran = made->Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(NetNs here, NetNs::OpenCurrent());
    inside = here.inode();
    return WriteSysctl("net/ipv4/ip_default_ttl", "77");
  });
  ASSERT_TRUE(ran) << ran.error().message();
  EXPECT_EQ(inside, made->inode());
  EXPECT_EQ(NetNs::OpenCurrent()->inode(), outside->inode());
  EXPECT_NE(*ReadSysctl("net/ipv4/ip_default_ttl"), "77");

  uint64_t here = 0;
  auto ran_here = made->RunHere([&]() -> Result<> {
    here = NetNs::OpenCurrent()->inode();
    return Error(Code::kConflict, "as said");
  });
  EXPECT_EQ(ran_here.error().message(), "as said");
  EXPECT_EQ(here, made->inode());
  EXPECT_EQ(NetNs::OpenCurrent()->inode(), outside->inode());
}

TEST(NetNs, NamedNamespaceIsFoundByPathUntilRemoved) {
  auto made = NetNs::Make();
  if (!made) GTEST_SKIP() << made.error().message();
  std::string path = ::testing::TempDir() + "/keelson-netns-" + std::to_string(::getpid());
  ASSERT_TRUE(made->BindTo(path));
  auto opened = NetNs::Open(path);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->inode(), made->inode());
  EXPECT_TRUE(RemoveNetNs(path));
  EXPECT_FALSE(PathExists(path));
  EXPECT_TRUE(RemoveNetNs(path));
}

TEST(NetNs, RefusesOtherFiles) {
  auto absent = NetNs::Open("/nonexistent/netns");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::kNotFound);
  auto file = NetNs::Open("/proc/self/status");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Code::kInvalid);
  auto other = NetNs::Open("/proc/self/ns/mnt");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace keelson::linux
