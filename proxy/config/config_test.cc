#include "proxy/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "lib/component/testing/flags.h"
#include "proxy/config/document.h"
#include "proxy/config/flags.h"

namespace keelson::proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Config, HostPorts) {
  struct {
    const char* text;
    const char* host;
    int port;
  } cases[] = {{"10.0.0.1:80", "10.0.0.1", 80},
               {":80", "0.0.0.0", 80},
               {"10.0.0.1", "10.0.0.1", 7},
               {"[::]:80", "::", 80},
               {"::1", "::1", 7},
               {"[::1]", "::1", 7},
               {"", "0.0.0.0", 7}};
  for (const auto& c : cases) {
    auto parsed = ParseHostPort(c.text, 7);
    ASSERT_TRUE(parsed) << c.text;
    EXPECT_EQ(parsed->host, c.host) << c.text;
    EXPECT_EQ(parsed->port, c.port) << c.text;
  }
  for (const char* text : {"host:80", "10.0.0.1:x", "10.0.0.1:70000", "10.0.0.1:-1"}) {
    EXPECT_FALSE(ParseHostPort(text, 7)) << text;
  }
}

constexpr char kHead[] = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

TEST(Document, IsWrittenAsItIsRead) {
  Document document;
  std::vector<std::string> problems;
  auto read = ReadDocument(kHead + std::string(R"(
clientConnection: {kubeconfig: /etc/kube, qps: 7.5}
clusterCIDR: 10.1.0.0/16,fd01::/48
featureGates: {Some: true}
hostnameOverride: n1
mode: nftables
metricsBindAddress: 0.0.0.0:1
nodePortAddresses: [10.0.0.0/8]
nftables: {masqueradeAll: true, masqueradeBit: 0, minSyncPeriod: 2s, syncPeriod: 0s}
iptables: {localhostNodePorts: null}
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 1h30m}
)"),
                           document, problems);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_THAT(problems, IsEmpty());
  SetDefaults(document);
  EXPECT_EQ(document.nftables.masquerade_bit, 0);  // zero is a value where upstream has a pointer
  EXPECT_EQ(document.nftables.sync_period, std::chrono::seconds(30));
  EXPECT_EQ(document.conntrack.max_per_core, 0);
  EXPECT_TRUE(document.iptables.localhost_node_ports);
  std::string yaml = ToYaml(document);
  EXPECT_THAT(yaml, HasSubstr("  qps: 7.5\n"));
  EXPECT_THAT(yaml, HasSubstr("  tcpEstablishedTimeout: 1h30m0s\n"));
  EXPECT_THAT(yaml, HasSubstr("clusterCIDR: \"10.1.0.0/16,fd01::/48\"\n"));
  Document again;
  ASSERT_TRUE(ReadDocument(yaml, again, problems));
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(ToYaml(again), yaml);
}

TEST(Document, Defaults) {
  Document document;
  SetDefaults(document);
  std::string yaml = ToYaml(document);
  for (const char* line :
       {"apiVersion: kubeproxy.config.k8s.io/v1alpha1\nbindAddress: 0.0.0.0\nbindAddressHardFail: false\n"
        "clientConnection:\n  acceptContentTypes: \"\"\n  burst: 10\n"
        "  contentType: application/vnd.kubernetes.protobuf\n  kubeconfig: \"\"\n  qps: 5\n",
        "conntrack:\n  maxPerCore: 32768\n  min: 131072\n  tcpBeLiberal: false\n  tcpCloseWaitTimeout: "
        "1h0m0s\n",
        "healthzBindAddress: 0.0.0.0:10256\n", "metricsBindAddress: 127.0.0.1:10249\n",
        "nodePortAddresses: null\n", "oomScoreAdj: -999\n", "  excludeCIDRs: null\n", "mode: \"\"\n"}) {
    EXPECT_THAT(yaml, HasSubstr(line));
  }
  std::string configz = ToConfigz(document);
  EXPECT_THAT(configz, ::testing::StartsWith("{\"kubeproxy.config.k8s.io\":{\"BindAddress\":\"0.0.0.0\","));
  EXPECT_THAT(configz, HasSubstr("\"Linux\":{\"Conntrack\":{\"MaxPerCore\":32768,\"Min\":131072,"));
  EXPECT_THAT(configz, HasSubstr("\"UDPTimeout\":\"0s\"},\"MasqueradeAll\":false,\"OOMScoreAdj\":-999}"));
  document = {};
  document.bind_address = "::";
  SetDefaults(document);
  EXPECT_EQ(document.healthz_bind_address, "[::]:10256");
  EXPECT_EQ(document.metrics_bind_address, "[::1]:10249");
}

TEST(Document, WhatCannotBeRead) {
  const std::pair<const char*, const char*> cases[] = {
      {"kind: Pod\napiVersion: v1", "failed to decode: no kind \"Pod\" is registered for version \"v1\""},
      {"mode: nftables", "failed to decode: Object 'Kind' is missing"},
      {"kind: [", "failed to decode: error converting YAML to JSON: "},
      {"- 1", "failed to decode: couldn't get version/kind"},
  };
  for (const auto& [text, error] : cases) {
    Document document;
    std::vector<std::string> problems;
    auto read = ReadDocument(text, document, problems);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message(), HasSubstr(error));
  }
  Document document;
  std::vector<std::string> problems;
  EXPECT_THAT(ReadDocument(kHead + std::string("nftables: {masqueradeBit: many}"), document, problems)
                  .error()
                  .message(),
              HasSubstr("nftables.masqueradeBit"));
  EXPECT_THAT(ReadDocument(kHead + std::string("configSyncPeriod: 5"), document, problems).error().message(),
              HasSubstr("configSyncPeriod: "));
  struct {
    const char *text, *error;
  } types[] = {{"syncPeriod: 0", ""},  // not of a section
               {"nftables: {syncPeriod: 0}", "nftables.syncPeriod: json: cannot unmarshal number 0"},
               {"clusterCIDR: 5", "clusterCIDR: json: cannot unmarshal number 5"},
               {"bindAddressHardFail: \"true\"", "bindAddressHardFail: json: cannot unmarshal string"},
               {"nodePortAddresses: primary", "nodePortAddresses: json: cannot unmarshal string"},
               {"iptables: 1", "iptables: json: cannot unmarshal number 1 into a value of type struct"},
               {"logging: {flushFrequency: 0}", ""},
               {"logging: {flushFrequency: 5000000000}", ""},
               {"logging: {flushFrequency: 5s}", ""},
               {"logging: {flushFrequency: 1.5}", "logging.flushFrequency: invalid duration \"1.5E0\""},
               {"logging: {options: {text: {infoBufferSize: 0}}}", ""},
               {"logging: {options: {text: {infoBufferSize: x}}}", "logging.options.text.infoBufferSize: "}};
  for (const auto& c : types) {
    Document one;
    std::vector<std::string> ignored;
    auto read = ReadDocument(kHead + std::string(c.text), one, ignored);
    EXPECT_EQ(read.has_value(), *c.error == 0) << c.text;
    if (!read) {
      EXPECT_THAT(read.error().message(), HasSubstr(c.error));
    } else {
      EXPECT_EQ(one.logging.flush_frequency, std::chrono::seconds(5)) << c.text;
    }
  }
  EXPECT_TRUE(ReadDocument(kHead + std::string("iptables: {beta: 1}\nudpIdleTimeout: 1s\n"
                                               "logging: {options: {json: {infoBufferSize: \"0\"}}}"),
                           document, problems));
  EXPECT_THAT(problems, ElementsAre("unknown field \"iptables.beta\"", "unknown field \"udpIdleTimeout\""));
}

TEST(Document, ProblemsInUpstreamsWords) {
  struct {
    std::function<void(Document&)> change;
    const char* problem;
  } cases[] = {
      {[](Document& d) { d.mode = "userspace"; },
       "KubeProxyConfiguration.Mode.ProxyMode: Invalid value: \"userspace\": must be iptables,ipvs,nftables "
       "or "
       "blank (blank means the best-available proxy [currently iptables])"},
      {[](Document& d) { d.iptables.masquerade_bit = 32; },
       "KubeProxyConfiguration.KubeProxyIPTablesConfiguration.MasqueradeBit: Invalid value: 32: must be "
       "within "
       "the range [0, 31]"},
      {[](Document& d) { d.oom_score_adj = 2000; },
       "KubeProxyConfiguration.OOMScoreAdj: Invalid value: 2000: must be within the range [-1000, 1000]"},
      {[](Document& d) { d.config_sync_period = {}; },
       "KubeProxyConfiguration.ConfigSyncPeriod: Invalid value: \"0s\": must be greater than 0"},
      {[](Document& d) { d.bind_address = "x"; },
       "KubeProxyConfiguration.BindAddress: Invalid value: \"x\": not a valid textual representation of an "
       "IP "
       "address"},
      {[](Document& d) { d.healthz_bind_address = "1.2.3.4:0"; },
       "KubeProxyConfiguration.HealthzBindAddress: Invalid value: \"0\": must be a valid port"},
      {[](Document& d) { d.cluster_cidr = "10.0.0.0/8,10.1.0.0/16"; },
       "KubeProxyConfiguration.DetectLocal.ClusterCIDRs: Invalid value: \"10.0.0.0/8,10.1.0.0/16\": must be "
       "a "
       "valid DualStack CIDR (e.g. 10.100.0.0/16,fde4:8dba:82e1::/48)"},
      {[](Document& d) { d.detect_local_mode = "Guess"; },
       "KubeProxyConfiguration.DetectLocalMode: Unsupported value: \"Guess\": supported values: "
       "\"BridgeInterface\", \"ClusterCIDR\", \"InterfaceNamePrefix\", \"NodeCIDR\""},
      {[](Document& d) { d.detect_local_mode = "BridgeInterface"; },
       "KubeProxyConfiguration.InterfaceName: Invalid value: \"\": must not be empty"},
      {[](Document& d) {
         d.node_port_addresses = {"primary", "10.0.0.0/8"};
       },
       "KubeProxyConfiguration.NodePortAddresses[0]: Invalid value: \"primary\": can't use both 'primary' "
       "and "
       "CIDRs"},
      {[](Document& d) { d.conntrack.min = -1; },
       "KubeProxyConfiguration.KubeProxyConntrackConfiguration.Min: Invalid value: -1: must be greater than "
       "or "
       "equal to 0"},
      {[](Document& d) { d.iptables.min_sync_period = std::chrono::minutes(1); },
       "KubeProxyConfiguration.SyncPeriod: Invalid value: \"1m0s\": must be greater than or equal to "
       "KubeProxyConfiguration.MinSyncPeriod"},
  };
  for (const auto& c : cases) {
    Document document;
    SetDefaults(document);
    EXPECT_THAT(Problems(document), IsEmpty());
    c.change(document);
    EXPECT_THAT(Problems(document), ElementsAre(c.problem));
  }
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

TEST(Flags, AsDeploymentsGiveThem) {
  auto config =
      FromFlags({"--kubeconfig=/k", "--hostname-override", " Node-1 ", "--cluster-cidr=10.1.0.0/16",
                 "--masquerade-all", "--iptables-sync-period=45s", "--conntrack-max-per-core=0",
                 "--nodeport-addresses=10.0.0.0/8,fd00::/8", "--metrics-bind-address=", "--v=2",
                 "--ipvs-scheduler=rr", "--healthz-port=10300", "--min-sync-period=2s", "--nft-table=blue",
                 "--cluster-domain=example.org", "--feature-gates=WatchList=true,kube:AllAlpha=false"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->hostname, "node-1");
  EXPECT_EQ(config->cluster_cidrs.size(), 1u);
  EXPECT_TRUE(config->masquerade_all);
  EXPECT_EQ(config->sync_period, std::chrono::seconds(45));
  EXPECT_EQ(config->nodeport_addresses.size(), 2u);
  EXPECT_EQ(config->metrics_address, "");
  EXPECT_EQ(config->healthz_address, "0.0.0.0:10300");
  EXPECT_EQ(config->min_sync_period, std::chrono::seconds(2));
  EXPECT_EQ(config->table, "blue");
  EXPECT_EQ(config->dns.domain, "example.org");
  EXPECT_THAT(config->configz, HasSubstr("\"FeatureGates\":{\"AllAlpha\":false,\"WatchList\":true}"));
}

TEST(Flags, FeatureGatesAreChecked) {
  const struct {
    const char *gates, *error;
  } cases[] = {{"A=true", "unrecognized feature gate: A"},
               {"HonorPVReclaimPolicy=true", "unrecognized feature gate: HonorPVReclaimPolicy"},
               {"NFTablesProxyMode=false",
                "cannot set feature gate NFTablesProxyMode to false, feature is locked to true"},
               {"AllBeta", "missing bool value for AllBeta"},
               {"AllBeta=maybe", "invalid value of AllBeta=maybe"}};
  for (const auto& c : cases) {
    auto config = FromFlags({std::string("--feature-gates=") + c.gates});
    ASSERT_FALSE(config) << c.gates;
    EXPECT_THAT(config.error().message(), HasSubstr(c.error));
  }
  auto config = FromFlags({"--feature-gates=AllowServiceExternalIPs=false"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->feature_gates, (std::map<std::string, bool>{{"AllowServiceExternalIPs", false}}));
}

TEST(Flags, WithoutAValueAreEmpty) {
  Flags flags;
  EXPECT_THAT(FlagsThatAreNotEmpty([&](CLI::App& app) { AddFlags(app, flags); }), IsEmpty());
  auto config =
      FromFlags({"--nodeport-addresses=", "--metrics-bind-address=", "--resolv-conf=", "--cluster-cidr="});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_THAT(config->nodeport_addresses, IsEmpty());
  EXPECT_EQ(config->metrics_address, "");
  EXPECT_EQ(config->dns.resolv_conf, "");
  EXPECT_THAT(config->cluster_cidrs, IsEmpty());
}

TEST(Flags, Modes) {
  EXPECT_TRUE(FromFlags({}));
  EXPECT_TRUE(FromFlags({"--proxy-mode=iptables"}));
  EXPECT_EQ(FromFlags({"--proxy-mode=iptables"})->mode, "nftables");
  auto ipvs =
      FromFlags({"--proxy-mode=ipvs", "--ipvs-scheduler=wlc", "--ipvs-strict-arp", "--masquerade-all",
                 "--ipvs-exclude-cidrs=192.0.2.7/24", "--ipvs-tcp-timeout=15m", "--ipvs-sync-period=10s"});
  ASSERT_TRUE(ipvs) << ipvs.error().message();
  EXPECT_EQ(ipvs->mode, "ipvs");
  EXPECT_EQ(ipvs->ipvs.scheduler, "wlc");
  EXPECT_EQ(ipvs->ipvs.excluded, std::vector<IpPrefix>{*IpPrefix::Parse("192.0.2.0/24")});
  EXPECT_TRUE(ipvs->ipvs.strict_arp && ipvs->masquerade_all);
  EXPECT_EQ(ipvs->ipvs.tcp, std::chrono::minutes(15));
  EXPECT_EQ(ipvs->ipvs.udp, std::chrono::seconds(0));
  EXPECT_EQ(ipvs->sync_period, std::chrono::seconds(10));
  EXPECT_EQ(FromFlags({"--proxy-mode=ipvs"})->ipvs.scheduler, "rr");
  EXPECT_FALSE(FromFlags({"--proxy-mode=ipvs", "--ipvs-min-sync-period=1h"}));
  EXPECT_FALSE(FromFlags({"--proxy-mode=ipvs", "--announce-addresses=192.0.2.1-192.0.2.2"}));
  EXPECT_FALSE(FromFlags({"--proxy-mode=x"}));
  EXPECT_FALSE(FromFlags({"--sync-period=x"}));
  auto bridge = FromFlags(
      {"--detect-local-mode=BridgeInterface", "--pod-bridge-interface=cni0", "--cluster-cidr=10.0.0.0/8"});
  ASSERT_TRUE(bridge);
  EXPECT_EQ(bridge->pod_bridge, "cni0");
  EXPECT_TRUE(bridge->cluster_cidrs.empty());
}

TEST(Flags, WhatARunningProxyCanChange) {
  const std::string fixed = FromFlags({})->fixed;
  for (const char* flag : {"--proxy-mode=ipvs", "--masquerade-all", "--ipvs-scheduler=lc"}) {
    EXPECT_EQ(FromFlags({flag})->fixed, fixed) << flag;
  }
  for (const char* flag : {"--cluster-cidr=10.0.0.0/8", "--sync-period=1m", "--metrics-port=1"}) {
    EXPECT_NE(FromFlags({flag})->fixed, fixed) << flag;
  }
}

TEST(Flags, ModeEbpf) {
  EXPECT_EQ(FromFlags({"--proxy-mode=iptables"})->mode, "nftables");
  auto config = FromFlags({"--proxy-mode=ebpf", "--sync-period=7s", "--masquerade-all"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->mode, "ebpf");
  EXPECT_EQ(config->sync_period, std::chrono::seconds(7));
  EXPECT_TRUE(config->masquerade_all);
  EXPECT_EQ(config->ebpf_cgroup, "");
  EXPECT_FALSE(config->ebpf_direct);
  EXPECT_FALSE(config->ebpf_dsr);
  EXPECT_EQ(config->ebpf_xdp, std::vector<std::string>{"auto"});
  EXPECT_EQ(config->ebpf_pins, "/sys/fs/bpf/keelson");
  EXPECT_EQ(config->ebpf_affinity_clients, 0u);
  config = FromFlags({"--ebpf-affinity-clients=100000", "--ebpf-udp-sockets=5000"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->ebpf_affinity_clients, 100000u);
  EXPECT_EQ(config->ebpf_udp_sockets, 5000u);
  config = FromFlags({"--proxy-mode=ebpf", "--ebpf-cgroup=/c", "--ebpf-pin-directory=/p",
                      "--ebpf-devices=eth0,ens*", "--ebpf-direct", "--ebpf-dsr", "--ebpf-xdp=eth1,ens*"});
  EXPECT_EQ(config->ebpf_cgroup, "/c");
  EXPECT_EQ(config->ebpf_pins, "/p");
  EXPECT_TRUE(config->ebpf_direct);
  EXPECT_TRUE(config->ebpf_dsr);
  EXPECT_EQ(config->ebpf_xdp, (std::vector<std::string>{"eth1", "ens*"}));
  EXPECT_EQ(config->ebpf_devices, (std::vector<std::string>{"eth0", "ens*"}));
  EXPECT_EQ(FromFlags({"--proxy-mode=ebpf", "--ebpf-dsr"}).error().message(),
            "--ebpf-dsr needs --ebpf-direct");
}

TEST(Flags, AnnouncedAddresses) {
  EXPECT_TRUE(FromFlags({})->announced.empty());
  auto config = FromFlags({"--announce-addresses=192.0.2.10-192.0.2.20,fd00::/120"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->announced.Contains(*IpAddress::Parse("192.0.2.20")));
  EXPECT_FALSE(config->announced.Contains(*IpAddress::Parse("192.0.2.21")));
  EXPECT_EQ(FromFlags({"--announce-addresses=192.0.2.20-192.0.2.10"}).error().message(),
            "--announce-addresses: invalid address range \"192.0.2.20-192.0.2.10\"");
}

}  // namespace
}  // namespace keelson::proxy
