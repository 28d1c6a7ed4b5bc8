#include "proxy/config.h"

#include <gtest/gtest.h>

namespace keelson::proxy {
namespace {

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

TEST(Config, Durations) {
  EXPECT_EQ(ParseDuration("1m30s")->count(), 90000);
  EXPECT_EQ(ParseDuration("500ms")->count(), 500);
  EXPECT_EQ(ParseDuration("0")->count(), 0);
  EXPECT_EQ(ParseDuration("1.5h")->count(), 5400000);
  for (const char* text : {"", "5", "-1s", "1x", "s"}) EXPECT_FALSE(ParseDuration(text)) << text;
}

TEST(Config, ReadsKubeProxyConfiguration) {
  Config config;
  auto parsed = ParseConfig(R"(
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: /etc/kube}
clusterCIDR: 10.1.0.0/16,fd01::/48
hostnameOverride: n1
mode: nftables
metricsBindAddress: 0.0.0.0:1
nodePortAddresses: [10.0.0.0/8]
nftables: {masqueradeAll: true, masqueradeBit: 10, minSyncPeriod: 2s, syncPeriod: 0s}
iptables: {localhostNodePorts: null}
)",
                            config);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(config.kubeconfig, "/etc/kube");
  ASSERT_EQ(config.cluster_cidrs.size(), 2u);
  EXPECT_EQ(config.cluster_cidrs[1].ToString(), "fd01::/48");
  EXPECT_EQ(config.hostname, "n1");
  EXPECT_EQ(config.metrics_address, "0.0.0.0:1");
  EXPECT_EQ(config.nodeport_addresses.size(), 1u);
  EXPECT_TRUE(config.masquerade_all);
  EXPECT_EQ(config.masquerade_bit, 10);
  EXPECT_EQ(config.min_sync_period.count(), 2000);
  EXPECT_EQ(config.sync_period.count(), 30000);
  EXPECT_TRUE(Validate(config));
  config.mode = "userspace";
  EXPECT_FALSE(Validate(config));
  EXPECT_FALSE(ParseConfig("kind: Pod", config));
  EXPECT_FALSE(ParseConfig("kind: KubeProxyConfiguration\nnftables: {masqueradeBit: many}", config));
  EXPECT_FALSE(ParseConfig("kind: [", config));
}

}  // namespace
}  // namespace keelson::proxy
