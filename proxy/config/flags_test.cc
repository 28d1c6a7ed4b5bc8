// The whole of upstream's command line, and what kubeadm gives.
#include "proxy/config/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "lib/base/file.h"
#include "lib/component/flags.h"
#include "proxy/config/document.h"
#include "proxy/config/flags_without_effect.h"

namespace keelson::proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Every flag of kube-proxy 1.36 on Linux.
constexpr const char* kUpstream[] = {"--bind-address=0.0.0.0",
                                     "--bind-address-hard-fail",
                                     "--boot-id-file=/etc/boot-id",
                                     "--cleanup",
                                     "--cluster-cidr=10.244.0.0/16",
                                     "--config=",
                                     "--config-sync-period=15m",
                                     "--conntrack-max-per-core=0",
                                     "--conntrack-min=0",
                                     "--conntrack-tcp-be-liberal",
                                     "--conntrack-tcp-timeout-close-wait=1h",
                                     "--conntrack-tcp-timeout-established=24h",
                                     "--conntrack-udp-timeout=30s",
                                     "--conntrack-udp-timeout-stream=2m",
                                     "--detect-local-mode=ClusterCIDR",
                                     "--feature-gates=AllAlpha=false",
                                     "--healthz-bind-address=0.0.0.0:10256",
                                     "--healthz-port=10256",
                                     "--hostname-override=n",
                                     "--init-only",
                                     "--iptables-localhost-nodeports",
                                     "--iptables-masquerade-bit=14",
                                     "--iptables-min-sync-period=1s",
                                     "--iptables-sync-period=30s",
                                     "--ipvs-exclude-cidrs=10.0.0.0/8",
                                     "--ipvs-min-sync-period=1s",
                                     "--ipvs-scheduler=rr",
                                     "--ipvs-strict-arp",
                                     "--ipvs-sync-period=30s",
                                     "--ipvs-tcp-timeout=1m",
                                     "--ipvs-tcpfin-timeout=1m",
                                     "--ipvs-udp-timeout=1m",
                                     "--kube-api-burst=10",
                                     "--kube-api-content-type=application/json",
                                     "--kube-api-qps=5",
                                     "--kubeconfig=/etc/kubeconfig",
                                     "--log-flush-frequency=5s",
                                     "--log-json-info-buffer-size=0",
                                     "--log-json-split-stream",
                                     "--log-text-info-buffer-size=64Ki",
                                     "--log-text-split-stream",
                                     "--logging-format=text",
                                     "--machine-id-file=/etc/machine-id",
                                     "--masquerade-all",
                                     "--master=https://192.0.2.1:6443",
                                     "--metrics-bind-address=127.0.0.1:10249",
                                     "--metrics-port=10249",
                                     "--nodeport-addresses=primary",
                                     "--oom-score-adj=-999",
                                     "--pod-bridge-interface=cni0",
                                     "--pod-interface-name-prefix=veth",
                                     "--profiling",
                                     "--proxy-mode=nftables",
                                     "--proxy-port-range=0-0",
                                     "--show-hidden-metrics-for-version=",
                                     "-v=2",
                                     "--vmodule=kube*=4",
                                     "--write-config-to="};

TEST(UpstreamFlags, AreAllTaken) {
  for (const char* flag : kUpstream) {
    CLI::App app;
    Flags flags;
    AddFlags(app, flags);
    std::ostringstream told;
    EXPECT_FALSE(ParseFlags(app, {flag}, told, told)) << told.str();
  }
}

TEST(UpstreamFlags, GivenTwiceCountAsPflagHasIt) {
  CLI::App app;
  Flags flags;
  AddFlags(app, flags);
  std::ostringstream out, err;
  const auto code = ParseFlags(app,
                               {"--feature-gates=AllAlpha=false", "--conntrack-min=1",
                                "--ipvs-sync-period=1s", "--proxy-mode=ipvs", "--feature-gates=AllBeta=false",
                                "--conntrack-min=2", "--ipvs-sync-period=2s", "--proxy-mode=nftables"},
                               out, err);
  ASSERT_FALSE(code) << err.str();
  EXPECT_EQ(flags.document.conntrack.min, 2);
  EXPECT_EQ(flags.ipvs_sync_period, std::chrono::seconds(2));
  EXPECT_EQ(flags.document.mode, "nftables");
  // Maps grow.
  EXPECT_EQ(flags.document.feature_gates,
            (std::map<std::string, bool>{{"AllAlpha", false}, {"AllBeta", false}}));
}

TEST(UpstreamFlags, WithoutEffectAreNamedOnceAndExplained) {
  const std::string doc = *ReadFile(KEELSON_SERVICES_DOC);
  for (const component::FlagWithoutEffect& flag : FlagsWithoutEffect()) {
    const std::string name = "--" + std::string(flag.name);
    EXPECT_THAT(doc, HasSubstr("`" + name + "`"));
    EXPECT_FALSE(flag.why.empty()) << flag.name;
    const bool upstreams =
        std::any_of(std::begin(kUpstream), std::end(kUpstream),
                    [&](std::string_view given) { return given.substr(0, given.find('=')) == name; });
    EXPECT_TRUE(upstreams) << flag.name;
  }
  CLI::App app;
  Flags flags;
  AddFlags(app, flags);
  std::ostringstream told;
  ASSERT_FALSE(
      ParseFlags(app, {"--profiling", "--vmodule=a=1", "--masquerade-all", "--vmodule=b=2"}, told, told))
      << told.str();
  std::vector<std::string> given;
  for (const auto* flag : component::GivenWithoutEffect(app, FlagsWithoutEffect())) {
    given.push_back("--" + std::string(flag->name));
  }
  EXPECT_THAT(given, ElementsAre("--profiling", "--vmodule"));
}

Result<Config> FromFlags(const std::vector<std::string>& args) {
  CLI::App app;
  Flags flags;
  AddFlags(app, flags);
  std::ostringstream told;
  if (ParseFlags(app, args, told, told)) return Error(Code::kInvalid, told.str());
  KEELSON_RETURN_IF_ERROR(Complete(app, flags));
  return Decide(app, flags);
}

// What kubeadm 1.36 writes into the ConfigMap kube-proxy, and the DaemonSet's command.
TEST(Kubeadm, ConfigurationIsTaken) {
  const std::string path = KEELSON_KUBEADM_FILES "/kube-proxy/config.conf";
  Document document;
  std::vector<std::string> problems;
  auto read = ReadDocument(*ReadFile(path), document, problems);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_THAT(problems, IsEmpty());
  auto config = FromFlags({"--config=" + path, "--hostname-override=node-1"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->hostname, "node-1");
  EXPECT_EQ(config->kubeconfig, "/var/lib/kube-proxy/kubeconfig.conf");
  EXPECT_EQ(config->mode, "nftables");
  EXPECT_EQ(config->cluster_cidrs, std::vector<IpPrefix>{*IpPrefix::Parse("10.244.0.0/16")});
  EXPECT_EQ(config->healthz_address, "0.0.0.0:10256");
  EXPECT_EQ(config->metrics_address, "127.0.0.1:10249");
  EXPECT_EQ(config->conntrack.max_per_core, 32768);
  EXPECT_EQ(config->oom_score_adj, -999);
}

}  // namespace
}  // namespace keelson::proxy
