#include "kubelet/config/config.h"

#include <gtest/gtest.h>

namespace keelson::kubelet {
namespace {

using std::chrono::milliseconds;

TEST(Duration, ParsesGoForms) {
  struct Case {
    const char* text;
    int64_t millis;  // -1: an error
  };
  for (const Case& c : {Case{"10s", 10000},
                        {"1m30s", 90000},
                        {"1h", 3600000},
                        {"250ms", 250},
                        {"1.5s", 1500},
                        {"0", 0},
                        {"0s", 0},
                        {"", -1},
                        {"10", -1},
                        {"s", -1},
                        {"10x", -1}}) {
    auto parsed = ParseDuration(c.text);
    EXPECT_EQ(parsed ? parsed->count() : -1, c.millis) << c.text;
  }
}

TEST(Config, ReadsWhatItKnowsAndKeepsDefaults) {
  auto config = ParseKubeletConfig(R"(
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
port: 11250
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
cgroupRoot: /keelson/n1
authentication:
  anonymous: {enabled: true}
  x509: {clientCAFile: /pki/ca.crt}
authorization: {mode: AlwaysAllow}
evictionHard: {memory.available: 1Gi}
syncFrequency: 0s
nodeStatusUpdateFrequency: 5s
crashLoopBackOff: {maxContainerRestartPeriod: 20s}
someFutureField: 1
)");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->port, 11250);
  EXPECT_EQ(config->cluster_dns, std::vector<std::string>{"10.96.0.10"});
  EXPECT_EQ(config->cgroup_root, "/keelson/n1");
  EXPECT_EQ(config->client_ca_file, "/pki/ca.crt");
  EXPECT_TRUE(config->anonymous);
  EXPECT_FALSE(config->webhook_authorization);
  EXPECT_EQ(config->eviction_hard, (std::map<std::string, std::string>{{"memory.available", "1Gi"}}));
  EXPECT_EQ(config->sync_frequency, milliseconds(60000));
  EXPECT_EQ(config->node_status_update_frequency, milliseconds(5000));
  EXPECT_EQ(config->max_container_restart_period, milliseconds(20000));
  EXPECT_EQ(config->max_pods, 110);
}

TEST(Config, SaysWhatIsWrong) {
  EXPECT_FALSE(ParseKubeletConfig("kind: Pod\napiVersion: v1\n"));
  EXPECT_FALSE(ParseKubeletConfig("a: [\n"));
  auto config = ParseKubeletConfig(
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nport: many\n");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message().find("port"), std::string::npos);
}

}  // namespace
}  // namespace keelson::kubelet
