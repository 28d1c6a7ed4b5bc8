// Defaults of KubeletConfiguration at Kubernetes 1.36, field by field.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "kubelet/config/config.h"
#include "kubelet/config/fields.h"
#include "kubelet/config/value.h"

namespace keelson::kubelet {
namespace {

namespace json = boost::json;

constexpr char kNothing[] = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

// Fields that are not here have no default beyond their zero.
const std::pair<const char*, const char*> kDefaults[] = {
    {"enableServer", "true"},
    {"syncFrequency", R"("1m0s")"},
    {"fileCheckFrequency", R"("20s")"},
    {"httpCheckFrequency", R"("20s")"},
    {"address", R"("0.0.0.0")"},
    {"port", "10250"},
    {"authentication.anonymous.enabled", "false"},
    {"authentication.webhook.enabled", "true"},
    {"authentication.webhook.cacheTTL", R"("2m0s")"},
    {"authorization.mode", R"("Webhook")"},
    {"authorization.webhook.cacheAuthorizedTTL", R"("5m0s")"},
    {"authorization.webhook.cacheUnauthorizedTTL", R"("30s")"},
    {"registryPullQPS", "5"},
    {"registryBurst", "10"},
    {"eventRecordQPS", "50"},
    {"eventBurst", "100"},
    {"enableDebuggingHandlers", "true"},
    {"healthzPort", "10248"},
    {"healthzBindAddress", R"("127.0.0.1")"},
    {"oomScoreAdj", "-999"},
    {"streamingConnectionIdleTimeout", R"("4h0m0s")"},
    {"nodeStatusUpdateFrequency", R"("10s")"},
    {"nodeStatusReportFrequency", R"("5m0s")"},
    {"nodeLeaseDurationSeconds", "40"},
    {"imageMinimumGCAge", R"("2m0s")"},
    {"imageGCHighThresholdPercent", "85"},
    {"imageGCLowThresholdPercent", "80"},
    {"volumeStatsAggPeriod", R"("1m0s")"},
    {"cgroupsPerQOS", "true"},
    {"cgroupDriver", R"("cgroupfs")"},
    {"cpuManagerPolicy", R"("none")"},
    {"cpuManagerReconcilePeriod", R"("10s")"},
    {"memoryManagerPolicy", R"("None")"},
    {"topologyManagerPolicy", R"("none")"},
    {"topologyManagerScope", R"("container")"},
    {"runtimeRequestTimeout", R"("2m0s")"},
    {"hairpinMode", R"("promiscuous-bridge")"},
    {"maxPods", "110"},
    {"podPidsLimit", "-1"},
    {"resolvConf", R"("/etc/resolv.conf")"},
    {"cpuCFSQuota", "true"},
    {"cpuCFSQuotaPeriod", R"("100ms")"},
    {"nodeStatusMaxImages", "50"},
    {"maxOpenFiles", "1000000"},
    {"contentType", R"("application/vnd.kubernetes.protobuf")"},
    {"kubeAPIQPS", "50"},
    {"kubeAPIBurst", "100"},
    {"serializeImagePulls", "true"},
    {"evictionHard",
     R"({"imagefs.available":"15%","imagefs.inodesFree":"5%","memory.available":"100Mi","nodefs.available":"10%","nodefs.inodesFree":"5%"})"},
    {"evictionPressureTransitionPeriod", R"("5m0s")"},
    {"mergeDefaultEvictionSettings", "false"},
    {"enableControllerAttachDetach", "true"},
    {"makeIPTablesUtilChains", "true"},
    {"iptablesMasqueradeBit", "14"},
    {"iptablesDropBit", "15"},
    {"failSwapOn", "true"},
    {"failCgroupV1", "false"},  // upstream: true (docs/differences.md)
    {"containerLogMaxSize", R"("10Mi")"},
    {"containerLogMaxFiles", "5"},
    {"containerLogMaxWorkers", "1"},
    {"containerLogMonitorInterval", R"("10s")"},
    {"configMapAndSecretChangeDetectionStrategy", R"("Watch")"},
    {"enforceNodeAllocatable", R"(["pods"])"},
    {"volumePluginDir", R"("/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")"},
    {"logging.format", R"("text")"},
    {"logging.flushFrequency", R"("5s")"},
    {"enableSystemLogHandler", "true"},
    {"enableProfilingHandler", "true"},
    {"enableDebugFlagsHandler", "true"},
    {"seccompDefault", "false"},
    {"memoryThrottlingFactor", "9E-1"},
    {"memoryReservationPolicy", R"("None")"},
    {"registerNode", "true"},
    {"localStorageCapacityIsolation", "true"},
    {"containerRuntimeEndpoint", R"("unix:///run/containerd/containerd.sock")"},
    {"podLogsDir", R"("/var/log/pods")"},
    {"crashLoopBackOff.maxContainerRestartPeriod", R"("5m0s")"},
    {"imagePullCredentialsVerificationPolicy", R"("NeverVerifyPreloadedImages")"},
    {"userNamespaces.idsPerPod", "65536"},  // upstream has it where it is used
};

bool IsZero(const json::value& value) {
  if (value.is_array()) return value.get_array().empty();
  if (value.is_object()) return value.get_object().empty();
  return value.is_null() || value == false || value == 0 || value == "" || value == "0s";
}

TEST(KubeletDefaults, AreThoseOfKubernetes136) {
  auto config = ParseKubeletConfig(kNothing);
  ASSERT_TRUE(config) << config.error().message();
  std::map<std::string_view, std::string> left(std::begin(kDefaults), std::end(kDefaults));
  for (const Field& field : Fields()) {
    const json::value value = PrintField(field, *config);
    auto expected = left.find(field.path);
    if (expected == left.end()) {
      EXPECT_TRUE(IsZero(value)) << field.path << " " << value;
      continue;
    }
    EXPECT_EQ(value, json::parse(expected->second)) << field.path;
    left.erase(expected);
  }
  EXPECT_TRUE(left.empty()) << left.begin()->first;
}

TEST(KubeletDefaults, ThatHangOnOtherFields) {
  const struct {
    const char *text, *path, *value;
  } cases[] = {
      {"nodeStatusUpdateFrequency: 7s", "nodeStatusReportFrequency", R"("7s")"},
      {"{nodeStatusUpdateFrequency: 7s, nodeStatusReportFrequency: 1m}", "nodeStatusReportFrequency",
       R"("1m0s")"},
      {"maxParallelImagePulls: 2", "serializeImagePulls", "false"},
      {"maxParallelImagePulls: 1", "serializeImagePulls", "true"},
      {"podPidsLimit: -5", "podPidsLimit", "-1"},
      {"evictionHard: {memory.available: 1Gi}", "evictionHard", R"({"memory.available":"1Gi"})"},
      {"cpuCFSQuotaPeriod: 10ms", "cpuCFSQuotaPeriod", R"("10ms")"},
      // Of two forms.
      {"logging: {flushFrequency: 0}", "logging.flushFrequency", R"("5s")"},
      {"logging: {flushFrequency: 3000000000}", "logging.flushFrequency", R"("3s")"},
      {"logging: {flushFrequency: 3s}", "logging.flushFrequency", R"("3s")"},
      {"reservedMemory: [{numaNode: 0, limits: {memory: 1048576}}]", "reservedMemory",
       R"([{"numaNode":0,"limits":{"memory":"1048576"}}])"},
      {"reservedMemory: [{numaNode: 0, limits: {memory: 1Mi}}]", "reservedMemory",
       R"([{"numaNode":0,"limits":{"memory":"1Mi"}}])"},
  };
  for (const auto& c : cases) {
    const std::string text = c.text;
    auto config = ParseKubeletConfig(
        text[0] == '{'
            ? "{kind: KubeletConfiguration, apiVersion: kubelet.config.k8s.io/v1beta1, " + text.substr(1)
            : kNothing + text);
    ASSERT_TRUE(config) << c.text << config.error().message();
    EXPECT_EQ(PrintField(*FindField(c.path), *config), json::parse(c.value)) << c.text;
    EXPECT_TRUE(ValidateKubeletConfig(*config)) << c.text;
  }
}

}  // namespace
}  // namespace keelson::kubelet
