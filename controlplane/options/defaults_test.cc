// Defaults of kube-controller-manager at Kubernetes 1.36, and of kube-scheduler where flags set them. How
// many keys each controller works on side by side is in flags_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "controlplane/options/flags.h"
#include "controlplane/options/flags_without_effect.h"
#include "lib/component/flags.h"

namespace keelson::controlplane {
namespace {

using ::testing::Contains;
using ::testing::Pair;

const std::pair<const char*, const char*> kDefaults[] = {
    {"leader-elect", "true"},
    {"leader-elect-lease-duration", "15s"},
    {"leader-elect-renew-deadline", "10s"},
    {"leader-elect-retry-period", "2s"},
    {"leader-elect-resource-lock", "leases"},
    {"leader-elect-resource-namespace", "kube-system"},
    {"profiling", "true"},
    {"cluster-signing-duration", "8760h0m0s"},
    {"horizontal-pod-autoscaler-sync-period", "15s"},
    {"horizontal-pod-autoscaler-downscale-stabilization", "5m0s"},
    {"horizontal-pod-autoscaler-cpu-initialization-period", "5m0s"},
    {"horizontal-pod-autoscaler-initial-readiness-delay", "30s"},
    {"horizontal-pod-autoscaler-tolerance", "0.1"},
    {"large-cluster-size-threshold", "50"},
    {"legacy-service-account-token-clean-up-period", "8760h0m0s"},
    {"max-endpoints-per-slice", "100"},
    {"mirroring-max-endpoints-per-subset", "1000"},
    {"node-eviction-rate", "0.1"},
    {"node-monitor-grace-period", "50s"},
    {"node-monitor-period", "5s"},
    {"node-startup-grace-period", "1m0s"},
    {"resource-quota-sync-period", "5m0s"},
    {"secondary-node-eviction-rate", "0.01"},
    {"terminated-pod-gc-threshold", "12500"},
    {"unhealthy-zone-threshold", "0.55"},
};

// Settings that change nothing here: their flags are taken, and these values ask for nothing.
const std::pair<const char*, const char*> kWithoutEffect[] = {
    {"attach-detach-reconcile-sync-period", "1m0s"},
    {"concurrent-device-taint-eviction-syncs", "8"},
    {"kube-api-burst", ""},  // upstream: 30 of the controllers, 100 of the scheduler
    {"kube-api-qps", ""},    // 20, 50
    {"min-resync-period", "12h0m0s"},
    {"namespace-sync-period", "5m0s"},
    {"pvclaimbinder-sync-period", "15s"},
};

std::map<std::string, std::string> DefaultFlags() {
  Options options;
  CLI::App app;
  AddFlags(app, options);
  std::ostringstream told;
  EXPECT_FALSE(ParseFlags(app, {}, told, told)) << told.str();
  std::map<std::string, std::string> out;
  for (const std::string& flag : FlagsOf(app)) {
    const size_t end = flag.find('=');
    out[flag.substr(0, end)] = flag.substr(end + 1);
  }
  return out;
}

TEST(ControllerDefaults, AreThoseOfKubernetes136) {
  const std::map<std::string, std::string> flags = DefaultFlags();
  for (const auto& [name, value] : kDefaults) EXPECT_THAT(flags, Contains(Pair(name, value)));
}

TEST(ControllerDefaults, WithoutEffect) {
  std::map<std::string_view, std::string_view> flags;
  for (const component::FlagWithoutEffect& flag : FlagsWithoutEffect()) flags[flag.name] = flag.standard;
  for (const auto& [name, value] : kWithoutEffect) EXPECT_THAT(flags, Contains(Pair(name, value)));
}

// What reaches the controllers.
TEST(ControllerDefaults, OfOptions) {
  const Options options;
  const auto signing = SigningOf(options.signing);
  ASSERT_TRUE(signing) << signing.error().message();
  EXPECT_EQ(signing->duration, std::chrono::hours(8760));
  for (const char* program : {"kube-controller-manager", "kube-scheduler"}) {
    const auto leader = LeaderOptionsOf(options.leader, program);
    ASSERT_TRUE(leader) << leader.error().message();
    EXPECT_EQ(leader->ns, "kube-system");
    EXPECT_EQ(leader->name, program);
    EXPECT_EQ(leader->lease_duration, std::chrono::seconds(15));
    EXPECT_EQ(leader->renew_deadline, std::chrono::seconds(10));
    EXPECT_EQ(leader->retry_period, std::chrono::seconds(2));
  }
}

}  // namespace
}  // namespace keelson::controlplane
