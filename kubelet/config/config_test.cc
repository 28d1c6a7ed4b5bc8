#include "kubelet/config/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json.hpp>

#include "kubelet/config/fields.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

constexpr char kHead[] = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

TEST(Config, ReadsWhatItKnowsAndKeepsDefaults) {
  auto config = ParseKubeletConfig(std::string(kHead) + R"(
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
healthzPort: 0
nodeStatusUpdateFrequency: 5s
maxParallelImagePulls: 3
crashLoopBackOff: {maxContainerRestartPeriod: 20s}
registerWithTaints: [{key: a, value: b, effect: NoSchedule}]
shutdownGracePeriodByPodPriority: [{priority: 100, shutdownGracePeriodSeconds: 10}]
logging: {verbosity: 4, options: {json: {infoBufferSize: "0"}}}
enforceNodeAllocatable: []
someFutureField: 1
)");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->port, 11250);
  EXPECT_EQ(config->cluster_dns, std::vector<std::string>{"10.96.0.10"});
  EXPECT_EQ(config->cgroup_root, "/keelson/n1");
  EXPECT_EQ(config->client_ca_file, "/pki/ca.crt");
  EXPECT_TRUE(config->anonymous);
  EXPECT_EQ(config->authorization_mode, "AlwaysAllow");
  EXPECT_EQ(config->eviction_hard, (StringMap{{"memory.available", "1Gi"}}));
  EXPECT_EQ(config->sync_frequency, seconds(60));
  EXPECT_EQ(config->healthz_port, 0);
  EXPECT_EQ(config->node_status_update_frequency, seconds(5));
  EXPECT_EQ(config->node_status_report_frequency, seconds(5));
  EXPECT_FALSE(config->serialize_image_pulls);
  EXPECT_EQ(config->max_container_restart_period, seconds(20));
  EXPECT_EQ(config->max_pods, 110);
  EXPECT_EQ(config->logging_verbosity, 4);
  EXPECT_TRUE(config->enforce_node_allocatable.empty());
  ASSERT_EQ(config->register_with_taints.size(), 1u);
  EXPECT_EQ(config->register_with_taints[0].effect, "NoSchedule");
  ASSERT_EQ(config->shutdown_grace_period_by_pod_priority.size(), 1u);
  EXPECT_EQ(config->shutdown_grace_period_by_pod_priority[0].seconds, 10);
  EXPECT_TRUE(ValidateKubeletConfig(*config));
}

TEST(Config, SaysWhatIsWrong) {
  struct Case {
    std::string text;
    const char* message;
  };
  for (const Case& c : {
           Case{"kind: Pod\napiVersion: v1\n", "no kind \"Pod\" is registered for version \"v1\" in scheme"},
           {"a: [\n", "error converting YAML to JSON"},
           {std::string(kHead) + "port: many\n",
            "json: cannot unmarshal string into Go struct field KubeletConfiguration.port of type int32"},
           {std::string(kHead) + "port: 99999999999\n", "json: cannot unmarshal number 99999999999 into"},
           {std::string(kHead) + "authentication: 3\n", "KubeletConfiguration.authentication of type struct"},
           {std::string(kHead) + "syncFrequency: 10\n", "cannot unmarshal number 10"},
           {std::string(kHead) + "logging: {flushFrequency: 1.5}\n", "invalid duration \"1.5E0\""},
           {std::string(kHead) + "logging: {options: {json: {infoBufferSize: x}}}\n",
            "logging.options.json.infoBufferSize: "},
           {std::string(kHead) + "syncFrequency: 10x\n", "time: unknown unit \"x\" in duration \"10x\""},
       }) {
    auto config = ParseKubeletConfig(c.text);
    ASSERT_FALSE(config) << c.text;
    EXPECT_NE(config.error().message().find(c.message), std::string::npos) << config.error().message();
  }
}

TEST(Config, EveryFieldIsFoundByItsPathOnce) {
  for (const Field& field : Fields()) EXPECT_EQ(FindField(field.path), &field) << field.path;
}

TEST(Config, ConfigzIsTheWholeConfiguration) {
  KubeletConfig config;
  config.static_pod_url_header = {{"Authorization", {"Bearer secret"}}};
  std::string text = ConfigzJson(config);
  EXPECT_EQ(text.find("secret"), std::string::npos);
  auto document = boost::json::parse(text).at("kubeletconfig").as_object();
  EXPECT_EQ(document.at("syncFrequency"), "1m0s");
  EXPECT_EQ(document.at("authentication").at("webhook").at("cacheTTL"), "2m0s");
  EXPECT_EQ(document.at("evictionHard").at("nodefs.inodesFree"), "5%");
  EXPECT_EQ(document.at("healthzPort"), 10248);
  EXPECT_FALSE(document.contains("staticPodPath"));
  // What is shown is read back the same.
  document["kind"] = "KubeletConfiguration";
  document["apiVersion"] = "kubelet.config.k8s.io/v1beta1";
  auto again = ParseKubeletConfig(boost::json::serialize(document));
  ASSERT_TRUE(again) << again.error().message();
  again->static_pod_url_header = config.static_pod_url_header;
  EXPECT_EQ(ConfigzJson(*again), text);
}

TEST(Config, DropInsAreMergedInOrder) {
  char name[] = "/tmp/kubelet_config_test.XXXXXX";
  std::string dir = ::mkdtemp(name);
  std::string head = kHead;
  ASSERT_TRUE(WriteFile(dir + "/main.yaml",
                        head + "maxPods: 1\nclusterDomain: a\nsystemReserved: {cpu: '1', memory: 1Gi}\n"));
  ASSERT_TRUE(WriteFile(dir + "/20-b.conf", head + "maxPods: 3\n"));
  ASSERT_TRUE(
      WriteFile(dir + "/10-a.conf", head + "maxPods: 2\nclusterDomain: b\nsystemReserved: {cpu: \"2\"}\n"));
  ASSERT_TRUE(WriteFile(dir + "/30-c.yaml", head + "maxPods: 4\n"));
  auto config = LoadKubeletConfig(dir + "/main.yaml", dir);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->max_pods, 3);
  EXPECT_EQ(config->cluster_domain, "b");
  EXPECT_EQ(config->system_reserved, (StringMap{{"cpu", "2"}, {"memory", "1Gi"}}));
  ASSERT_TRUE(WriteFile(dir + "/40-d.conf", "maxPods: 5\n"));
  EXPECT_FALSE(LoadKubeletConfig(dir + "/main.yaml", dir));
  (void)RemoveTree(dir);
}

TEST(Config, ValidatesInUpstreamsWords) {
  struct Case {
    const char* yaml;
    const char* message;  // null: fine
  };
  for (const Case& c : {
           Case{"{}", nullptr},
           {"port: 70000", "port (--port) 70000 must be between 1 and 65535, inclusive"},
           {"imageGCLowThresholdPercent: 90",
            "imageGCLowThresholdPercent (--image-gc-low-threshold) 90 must be less than"},
           {"cpuCFSQuotaPeriod: 10ms", nullptr},
           {"cpuCFSQuotaPeriod: 2s", "between 1ms and 1sec"},
           {"{featureGates: {CustomCPUCFSQuotaPeriod: false}, cpuCFSQuotaPeriod: 200ms}",
            "requires feature gate CustomCPUCFSQuotaPeriod"},
           {"featureGates: {GitRepoVolumeDriver: true}",
            "cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false"},
           {"featureGates: {Nonsense: true}", "unrecognized feature gate: Nonsense"},
           {"featureGates: {NodeSwap: false}",
            "cannot set feature gate NodeSwap to false, feature is locked to true"},
           {"featureGates: {GitRepoVolumeDriver: true}",
            "cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false"},
           {"featureGates: {HonorPVReclaimPolicy: true}", "unrecognized feature gate: HonorPVReclaimPolicy"},
           {"enforceNodeAllocatable: [pods, system-reserved]",
            "systemReservedCgroup (--system-reserved-cgroup) must be specified when"},
           {"enforceNodeAllocatable: [pods, pods]", "duplicated enforcements \"pods\""},
           {"enforceNodeAllocatable: [all]", "option \"all\" specified for enforceNodeAllocatable"},
           {"enforceNodeAllocatable: [none, pods]", "may not contain additional enforcements"},
           {"topologyManagerPolicy: best",
            "topologyManagerPolicy (--topology-manager-policy) \"best\" must be"},
           {"memorySwap: {swapBehavior: Much}", "memorySwap.swapBehavior \"Much\" must be one of"},
           {"shutdownGracePeriod: 100ms", "must be either zero or otherwise >= 1 sec"},
           {"crashLoopBackOff: {maxContainerRestartPeriod: 10m}", "must be set between 1s and 300s"},
           {"podLogsDir: logs", "pod logs path \"logs\" must be absolute path"},
           {"podLogsDir: /a/../b", "must be normalized"},
           {"containerLogMaxFiles: 1", "containerLogMaxFiles must be greater than 1"},
           {"configMapAndSecretChangeDetectionStrategy: Poll",
            "unknown configmap and secret manager mode: Poll"},
           {"authorization: {mode: RBAC}", "unknown authorization mode RBAC"},
           {"authorization: {mode: AlwaysAllow}", nullptr},
           {"logging: {format: xml}", "Unsupported log format"},
           {"logging: {verbosity: -1}", "logging.verbosity: Invalid value: -1"},
           {"logging: {flushFrequency: -1s}", "logging.flushFrequency: Invalid value: -1s"},
           {"showHiddenMetricsForVersion: '1.20'", "must be omitted or have the value '1.35'"},
           {"tracing: {samplingRatePerMillion: 1000001}", "must be less than or equal to one million"},
           {"tracing: {samplingRatePerMillion: -1}", "sampling rate must be positive"},
           {"tracing: {endpoint: 'http://here'}", "unsupported scheme: http"},
           {"tracing: {endpoint: 'localhost:4317', samplingRatePerMillion: 10}", nullptr},
           {"memoryReservationPolicy: TieredReservation", "requires MemoryQoS feature gate to be enabled"},
           {"{featureGates: {MemoryQoS: true}, memoryReservationPolicy: TieredReservation}", nullptr},
           {"userNamespaces: {idsPerPod: 1000}", "idsPerPod 1000 must be a multiple of 65536"},
           {"userNamespaces: {idsPerPod: 4294967296}", "must be a multiple of 65536, and at most 4294901760"},
           {"userNamespaces: {idsPerPod: 131072}", nullptr},
           {"registerWithTaints: [{key: a, effect: Never}]", "invalid taint: {a  Never}"},
           {"registerWithTaints: [{value: a, effect: NoSchedule}]", "invalid taint"},
           {"reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]", "the limit type \"cpu\" for NUMA node 0"},
           {"reservedMemory: [{numaNode: 1, limits: {memory: 0}}]",
            "reserved memory may not be zero for NUMA node 1"},
           {"reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 0, limits: {memory: 2Gi}}]",
            "a duplicate value for NUMA node 0 and resource \"memory\""},
           {"reservedMemory: [{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 4Mi}}]", nullptr},
           {"runOnce: true", "Runonce mode has been deprecated"},
           {"maxPods: -1", "maxPods (--max-pods) -1 must not be a negative number"},
       }) {
    std::string text = c.yaml;
    std::string document = text[0] == '{'
                               ? "{kind: KubeletConfiguration, apiVersion: kubelet.config.k8s.io/v1beta1" +
                                     std::string(text == "{}" ? "" : ", ") + text.substr(1)
                               : kHead + text + "\n";
    auto config = ParseKubeletConfig(document);
    ASSERT_TRUE(config) << c.yaml << config.error().message();
    auto valid = ValidateKubeletConfig(*config);
    EXPECT_EQ(valid.has_value(), c.message == nullptr) << c.yaml;
    if (!valid && c.message) {
      EXPECT_NE(valid.error().message().find(c.message), std::string::npos) << valid.error().message();
    }
  }
}

}  // namespace
}  // namespace keelson::kubelet
