#include "controlplane/options/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "controlplane/options/option_values.h"
#include "controlplane/options/tls_options.h"
#include "lib/component/testing/flags.h"

namespace keelson::controlplane {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

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

TEST(Flags, SayHowHttpsIsServed) {
  const std::string suite = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
  struct {
    std::vector<std::string> flags;
    std::string error;
  } rows[] = {
      {{}, ""},
      {{"--tls-min-version=VersionTLS13", "--tls-cipher-suites=" + suite}, ""},
      {{"--tls-min-version=1.3"}, "unknown tls version \"1.3\""},
      {{"--tls-cipher-suites=" + suite + ",NULL"}, "Cipher suite NULL not supported or doesn't exist"},
      {{"--tls-cert-file=/a.crt"}, "--tls-cert-file and --tls-private-key-file must be specified together"},
  };
  for (const auto& row : rows) {
    Options options;
    CLI::App app;
    AddFlags(app, options);
    std::ostringstream told;
    ASSERT_FALSE(ParseFlags(app, row.flags, told, told)) << told.str();
    const auto tls = TlsOptionsOf(options);
    EXPECT_EQ(tls ? "" : tls.error().message(), row.error);
    if (tls && !row.flags.empty()) {
      EXPECT_EQ(tls->min_version, "VersionTLS13");
      EXPECT_THAT(tls->cipher_suites, ElementsAre(suite));
    }
  }
}

TEST(Flags, SayWhichCertificatesAndGroupsThereAre) {
  struct {
    std::vector<std::string> flags;
    std::string error;
  } rows[] = {
      {{"--tls-sni-cert-key=a.crt,a.key:*.a.com,a.com", "--tls-sni-cert-key", "b.crt,b.key",
        "--tls-curve-preferences=29,23"},
       ""},
      {{"--tls-sni-cert-key=a.crt"},
       "invalid argument \"a.crt\" for \"--tls-sni-cert-key\" flag: expected comma separated certificate and "
       "key "
       "file paths"},
      {{"--tls-curve-preferences=29,1"}, "--tls-curve-preferences: TLS curve preference 1 is not supported"},
      {{"--tls-curve-preferences=X25519"}, "--tls-curve-preferences: \"X25519\" is no number"},
  };
  for (const auto& row : rows) {
    Options options;
    CLI::App app;
    AddFlags(app, options);
    std::ostringstream told;
    ASSERT_FALSE(ParseFlags(app, row.flags, told, told)) << told.str();
    const auto tls = TlsOptionsOf(options);
    EXPECT_EQ(tls ? "" : tls.error().message(), row.error);
    if (!tls) continue;
    EXPECT_THAT(tls->curves, ElementsAre(29, 23));
    ASSERT_EQ(tls->named.size(), 2u);
    EXPECT_THAT(tls->named[0].names, ElementsAre("*.a.com", "a.com"));
    EXPECT_THAT(tls->named[1].names, IsEmpty());
    EXPECT_THAT(TlsFilesOf(*tls), ElementsAre("", "", "", "", "a.crt", "a.key", "b.crt", "b.key"));
  }
}

TEST(Flags, SayWhereInEtcdAllIs) {
  for (const char* good : {"/registry", "registry", "/registry/", "//registry"}) {
    EXPECT_EQ(EtcdPrefix(good).value_or("?"), "/registry") << good;
  }
  EXPECT_EQ(EtcdPrefix("a/b").value_or("?"), "/a/b");
  for (const char* bad : {"", "/", "//", "a//b", ".", "/a/../b", "a/.."}) {
    EXPECT_FALSE(EtcdPrefix(bad)) << bad;
  }
}

TEST(Flags, SayHowConnectionsAreUsed) {
  const struct {
    const char* chance;
    bool allowed;
  } rows[] = {{"0", true}, {"0.02", true}, {"0.021", false}, {"-0.01", false}, {"nan", false}};
  for (const auto& row : rows) {
    Options options;
    CLI::App app;
    AddFlags(app, options);
    std::ostringstream told;
    ASSERT_FALSE(ParseFlags(app,
                            {std::string("--goaway-chance=") + row.chance,
                             "--http2-max-streams-per-connection=7", "--permit-port-sharing"},
                            told, told))
        << told.str();
    const Result<double> chance = GoawayChance(options);
    EXPECT_EQ(chance.has_value(), row.allowed) << row.chance;
    if (!chance) {
      EXPECT_EQ(chance.error().message(), "--goaway-chance can not be less than 0 or greater than 0.02");
    }
    http::ServerOptions server;
    SetConnections(options, server);
    EXPECT_EQ(server.max_streams, 7u);
    EXPECT_TRUE(server.reuse_port);
    SetConnections(Options(), server = {});
    EXPECT_EQ(server.max_streams, 500u);
    EXPECT_FALSE(server.reuse_port);
  }
}

TEST(Flags, DurationsAreGos) {
  Options options;
  CLI::App app;
  AddFlags(app, options);
  EXPECT_THAT(FlagsOf(app), AllOf(Contains("node-monitor-grace-period=50s"),
                                  Contains("legacy-service-account-token-clean-up-period=8760h0m0s")));
  std::ostringstream told;
  ASSERT_FALSE(ParseFlags(
      app,
      {"--node-monitor-period=500ms", "--leader-elect-lease-duration=1h30m", "--request-timeout", "1.5s"},
      told, told))
      << told.str();
  EXPECT_EQ(options.manager.node_monitor_period, std::chrono::milliseconds(500));
  EXPECT_EQ(options.leader.lease_duration, std::chrono::minutes(90));
  EXPECT_EQ(options.request_timeout, std::chrono::milliseconds(1500));
  for (const char* wrong : {"30", "5 minutes", "1x"}) {
    Options unused;
    CLI::App other;
    AddFlags(other, unused);
    std::ostringstream error;
    EXPECT_EQ(ParseFlags(other, {"--node-monitor-period", wrong}, error, error), 1) << wrong;
    EXPECT_THAT(error.str(), HasSubstr("invalid argument \"" + std::string(wrong) +
                                       "\" for \"--node-monitor-period\" flag: time: "));
  }
}

TEST(Flags, FeatureGatesAddUp) {
  Options options;
  CLI::App app;
  AddFlags(app, options);
  std::ostringstream told;
  ASSERT_FALSE(ParseFlags(
      app, {"--feature-gates=WatchList=false,AllAlpha=true", "--feature-gates=kube:WatchList=true"}, told,
      told))
      << told.str();
  EXPECT_EQ(options.feature_gates, (k8s::FeatureGates{{"AllAlpha", true}, {"WatchList", true}}));
  CLI::App other;
  AddFlags(other, options);
  EXPECT_EQ(ParseFlags(other, {"--feature-gates=WatchList=maybe"}, told, told), 1);
  EXPECT_THAT(told.str(), HasSubstr("invalid value of WatchList=maybe, err: strconv.ParseBool"));
}

TEST(Flags, CborIsRefusedByName) {
  const auto checked = [](const std::vector<std::string>& words) {
    Options options;
    CLI::App app;
    AddFlags(app, options);
    std::ostringstream told;
    EXPECT_FALSE(ParseFlags(app, words, told, told)) << told.str();
    const Result<> result = CheckServerGates(options);
    return result ? "" : result.error().message();
  };
  EXPECT_EQ(checked({"--feature-gates=CBORServingAndStorage=true"}),
            "--feature-gates=CBORServingAndStorage=true: this API server neither speaks nor stores CBOR");
  EXPECT_EQ(checked({}), "");
  EXPECT_EQ(checked({"--feature-gates=CBORServingAndStorage=false"}), "");
  EXPECT_EQ(checked({"--feature-gates=AllAlpha=true"}), "") << "a warning names what is missing";
  EXPECT_EQ(checked({"--feature-gates=CBORServingAndStorage=true", "--roles=scheduler"}), "");
}

TEST(Flags, ThoseOfPeersNeedTheirGate) {
  Options options;
  options.peer_ca_file = "/etc/kubernetes/pki/ca.crt";
  EXPECT_TRUE(CheckServerGates(options));
  options.feature_gates["UnknownVersionInteroperabilityProxy"] = false;
  const Result<> result = CheckServerGates(options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on");
  options.peer_ca_file.clear();
  EXPECT_TRUE(CheckServerGates(options));
}

// Upstream's names and defaults.
TEST(Flags, HowManyKeysAreWorkedOnSideBySide) {
  const std::map<std::string, int> want = {{"concurrent-cron-job-syncs", 5},
                                           {"concurrent-daemonset-syncs", 2},
                                           {"concurrent-deployment-syncs", 5},
                                           {"concurrent-endpoint-syncs", 5},
                                           {"concurrent-ephemeralvolume-syncs", 5},
                                           {"concurrent-gc-syncs", 20},
                                           {"concurrent-horizontal-pod-autoscaler-syncs", 5},
                                           {"concurrent-job-syncs", 5},
                                           {"concurrent-namespace-syncs", 10},
                                           {"concurrent-rc-syncs", 5},
                                           {"concurrent-replicaset-syncs", 5},
                                           {"concurrent-resource-claim-syncs", 50},
                                           {"concurrent-resource-quota-syncs", 5},
                                           {"concurrent-service-endpoint-syncs", 5},
                                           {"concurrent-service-syncs", 1},
                                           {"concurrent-serviceaccount-token-syncs", 5},
                                           {"concurrent-statefulset-syncs", 5},
                                           {"concurrent-ttl-after-finished-syncs", 5},
                                           {"concurrent-validating-admission-policy-status-syncs", 5},
                                           {"mirroring-concurrent-service-endpoint-syncs", 5}};
  Options options;
  CLI::App app;
  AddFlags(app, options);
  std::vector<std::string> have, words = FlagsOf(app);
  for (const std::string& word : words) {
    const auto is_it = [&](const component::FlagWithoutEffect& flag) {
      return word.starts_with(std::string(flag.name) + "=");
    };
    if (word.find("concurrent-") != std::string::npos && std::ranges::none_of(FlagsWithoutEffect(), is_it)) {
      have.push_back(word);
    }
  }
  std::vector<std::string> wanted;
  for (const auto& [name, number] : want) wanted.push_back(name + "=" + std::to_string(number));
  EXPECT_THAT(have, UnorderedElementsAreArray(wanted));
  std::ostringstream told;
  ASSERT_FALSE(ParseFlags(app, {"--concurrent-gc-syncs=3"}, told, told)) << told.str();
  EXPECT_EQ(options.manager.workers.find("garbage-collector-controller")->second, 3);
  CLI::App other;
  AddFlags(other, options);
  EXPECT_EQ(ParseFlags(other, {"--concurrent-gc-syncs=0"}, told, told), 1);
}

}  // namespace
}  // namespace keelson::controlplane
