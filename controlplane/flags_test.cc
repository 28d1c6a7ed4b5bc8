#include "controlplane/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/flags_testing.h"

namespace keelson::controlplane {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Flags, WithoutAValueAreEmpty) {
  Options options;
  EXPECT_THAT(FlagsThatAreNotEmpty([&](CLI::App& app) { AddFlags(app, options); }), IsEmpty());
}

TEST(Flags, ListsAreReplaced) {
  Options options;
  CLI::App app;
  AddFlags(app, options);
  EXPECT_THAT(FlagsOf(app), Contains("roles=[apiserver,scheduler,controllers]"));
  std::ostringstream told;
  ASSERT_FALSE(ParseFlags(
      app, {"--roles=apiserver,scheduler", "--etcd-servers=", "--authorization-mode=RBAC"}, told, told))
      << told.str();
  EXPECT_THAT(options.roles, ElementsAre("apiserver", "scheduler"));
  EXPECT_THAT(options.etcd_servers, IsEmpty());
  EXPECT_THAT(FlagsOf(app), Contains("roles=apiserver,scheduler"));
}

}  // namespace
}  // namespace keelson::controlplane
