#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kubelet/config/config.h"
#include "kubelet/config/validate_parts.h"
#include "lib/api/duration.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::kubelet {

namespace {

using C = KubeletConfig;
using Problems = std::vector<std::string>;
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostIds = int64_t{std::numeric_limits<uint32_t>::max()} - 65535;  // the host has the first

struct Range {
  const char* name;  // with the flag
  int32_t C::*place;
  int64_t least, most;
  const char* rule;
};

constexpr char kNotNegative[] = "must not be a negative number";

const Range kRanges[] = {
    {"eventBurst (--event-burst)", &C::event_burst, 0, kMost, kNotNegative},
    {"eventRecordQPS (--event-qps)", &C::event_record_qps, 0, kMost, kNotNegative},
    {"healthzPort (--healthz-port)", &C::healthz_port, 0, 65535, "must be between 1 and 65535, inclusive"},
    {"imageGCHighThresholdPercent (--image-gc-high-threshold)", &C::image_gc_high_threshold_percent, 0, 100,
     "must be between 0 and 100, inclusive"},
    {"imageGCLowThresholdPercent (--image-gc-low-threshold)", &C::image_gc_low_threshold_percent, 0, 100,
     "must be between 0 and 100, inclusive"},
    {"iptablesDropBit (--iptables-drop-bit)", &C::iptables_drop_bit, 0, 31,
     "must be between 0 and 31, inclusive"},
    {"iptablesMasqueradeBit (--iptables-masquerade-bit)", &C::iptables_masquerade_bit, 0, 31,
     "must be between 0 and 31, inclusive"},
    {"kubeAPIBurst (--kube-api-burst)", &C::kube_api_burst, 0, kMost, kNotNegative},
    {"kubeAPIQPS (--kube-api-qps)", &C::kube_api_qps, 0, kMost, kNotNegative},
    {"nodeStatusMaxImages (--node-status-max-images)", &C::node_status_max_images, -1, kMost,
     "must be -1 or greater"},
    {"maxPods (--max-pods)", &C::max_pods, 0, kMost, kNotNegative},
    {"oomScoreAdj (--oom-score-adj)", &C::oom_score_adj, -1000, 1000,
     "must be between -1000 and 1000, inclusive"},
    {"podsPerCore (--pods-per-core)", &C::pods_per_core, 0, kMost, kNotNegative},
    {"port (--port)", &C::port, 1, 65535, "must be between 1 and 65535, inclusive"},
    {"readOnlyPort (--read-only-port)", &C::read_only_port, 0, 65535,
     "must be between 0 and 65535, inclusive"},
    {"registryBurst (--registry-burst)", &C::registry_burst, 0, kMost, kNotNegative},
    {"registryPullQPS (--registry-qps)", &C::registry_pull_qps, 0, kMost, kNotNegative},
    {"maxParallelImagePulls", &C::max_parallel_image_pulls, 0, kMost, "must be a positive number"},
};

struct Choice {
  std::string C::*place;
  std::vector<std::string> values;
  const char* message;  // of the value
};

const Choice kChoices[] = {
    {&C::topology_manager_policy,
     {"none", "best-effort", "restricted", "single-numa-node"},
     "topologyManagerPolicy (--topology-manager-policy) \"{}\" must be one of: [\"none\" \"best-effort\" "
     "\"restricted\" \"single-numa-node\"]"},
    {&C::topology_manager_scope,
     {"container", "pod"},
     "topologyManagerScope (--topology-manager-scope) \"{}\" must be one of: \"container\", or \"pod\""},
    {&C::swap_behavior,
     {"", "NoSwap", "LimitedSwap"},
     "memorySwap.swapBehavior \"{}\" must be one of: \"\", \"LimitedSwap\" or \"NoSwap\""},
    {&C::hairpin_mode,
     {"none", "hairpin-veth", "promiscuous-bridge"},
     "option \"{}\" specified for hairpinMode (--hairpin-mode). Valid options are \"none\", \"hairpin-veth\" "
     "or \"promiscuous-bridge\""},
    {&C::image_pull_credentials_verification_policy,
     {"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"},
     "option \"{}\" specified for imagePullCredentialsVerificationPolicy. Valid options are \"NeverVerify\", "
     "\"NeverVerifyPreloadedImages\", \"NeverVerifyAllowlistedImages\" or \"AlwaysVerify\""},
    {&C::config_map_and_secret_change_detection_strategy,
     {"Get", "Cache", "Watch"},
     "unknown configmap and secret manager mode: {}"},
    {&C::authorization_mode, {"AlwaysAllow", "Webhook"}, "unknown authorization mode {}"},
    {&C::logging_format, {"text", "json"}, "logging.format: Invalid value: \"{}\": Unsupported log format"},
    {&C::show_hidden_metrics_for_version,
     {"", "1.35"},
     "showHiddenMetricsForVersion \"{}\" must be omitted or have the value '1.35'; only the previous minor "
     "version is allowed"},
    {&C::memory_reservation_policy,
     {"None", "TieredReservation"},
     "option \"{}\" specified for memoryReservationPolicy. Valid options are \"None\" or "
     "\"TieredReservation\""},
};

std::string Text(Duration duration) {
  return api::FormatGoDuration(std::chrono::nanoseconds(duration).count());
}

void CheckDurations(const KubeletConfig& config, Problems& out) {
  using std::chrono::seconds;
  auto whole_second = [&](const char* name, Duration value) {
    if (value < Duration(0) || (value > Duration(0) && value < seconds(1))) {
      out.push_back(fmt::format("{} {{{}}} must be either zero or otherwise >= 1 sec", name, Text(value)));
    }
  };
  if (config.cpu_cfs_quota_period != std::chrono::milliseconds(100) &&
      !k8s::FeatureEnabled(config.feature_gates, "CustomCPUCFSQuotaPeriod")) {
    out.push_back(
        fmt::format("cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} requires feature gate "
                    "CustomCPUCFSQuotaPeriod",
                    Text(config.cpu_cfs_quota_period)));
  } else if (config.cpu_cfs_quota_period < std::chrono::milliseconds(1) ||
             config.cpu_cfs_quota_period > seconds(1)) {
    out.push_back(
        fmt::format("cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} must be between 1ms and 1sec, "
                    "inclusive",
                    Text(config.cpu_cfs_quota_period)));
  }
  const Duration least = config.image_minimum_gc_age, most = config.image_maximum_gc_age;
  if (least < Duration(0)) {
    out.push_back(fmt::format("imageMinimumGCAge {} must not be negative", Text(least)));
  }
  if (most < Duration(0)) out.push_back(fmt::format("imageMaximumGCAge {} must not be negative", Text(most)));
  if (most > Duration(0) && most <= least) {
    out.push_back(fmt::format("imageMaximumGCAge {} must be greater than imageMinimumGCAge {}", Text(most),
                              Text(least)));
  }
  if (config.shutdown_grace_period_critical_pods > config.shutdown_grace_period) {
    out.push_back(fmt::format("shutdownGracePeriodCriticalPods {{{}}} must be <= shutdownGracePeriod {{{}}}",
                              Text(config.shutdown_grace_period_critical_pods),
                              Text(config.shutdown_grace_period)));
  }
  whole_second("shutdownGracePeriod", config.shutdown_grace_period);
  whole_second("shutdownGracePeriodCriticalPods", config.shutdown_grace_period_critical_pods);
  if (!config.shutdown_grace_period_by_pod_priority.empty() &&
      (config.shutdown_grace_period > Duration(0) ||
       config.shutdown_grace_period_critical_pods > Duration(0))) {
    out.push_back(
        "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time");
  }
  const Duration restart = config.max_container_restart_period;
  if (restart < seconds(1) || restart > seconds(300)) {
    out.push_back(fmt::format(
        "CrashLoopBackOff.MaxContainerRestartPeriod (got: {} seconds) must be set between 1s and 300s",
        std::chrono::duration<double>(restart).count()));
  }
  if (config.container_log_monitor_interval < seconds(3)) {
    out.push_back("containerLogMonitorInterval must be a positive time duration greater than or equal to 3s");
  }
}

void CheckTogether(const KubeletConfig& config, Problems& out) {
  if (config.node_lease_duration_seconds <= 0) {
    out.push_back("nodeLeaseDurationSeconds must be greater than 0");
  }
  if (!config.system_cgroups.empty() && config.cgroup_root.empty()) {
    out.push_back(
        "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified");
  }
  if (config.image_gc_low_threshold_percent >= config.image_gc_high_threshold_percent) {
    out.push_back(
        fmt::format("imageGCLowThresholdPercent (--image-gc-low-threshold) {} must be less than "
                    "imageGCHighThresholdPercent (--image-gc-high-threshold) {}",
                    config.image_gc_low_threshold_percent, config.image_gc_high_threshold_percent));
  }
  if (config.max_open_files < 0) {
    out.push_back(fmt::format("maxOpenFiles (--max-open-files) {} {}", config.max_open_files, kNotNegative));
  }
  if (config.serialize_image_pulls && config.max_parallel_image_pulls > 1) {
    out.push_back(
        "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
        "(--serialize-image-pulls) is set to false");
  }
  if (config.server_tls_bootstrap &&
      !k8s::FeatureEnabled(config.feature_gates, "RotateKubeletServerCertificate")) {
    out.push_back("serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate");
  }
  if (config.run_once) {
    out.push_back("runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set");
  }
  if (!config.reserved_system_cpus.empty() &&
      (!config.system_reserved_cgroup.empty() || !config.kube_reserved_cgroup.empty())) {
    out.push_back(
        "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
        "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)");
  }
  if (!config.preloaded_images_verification_allowlist.empty() &&
      config.image_pull_credentials_verification_policy != "NeverVerifyAllowlistedImages") {
    out.push_back(
        "can't set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is "
        "not \"NeverVerifyAllowlistedImages\"");
  }
  if (config.memory_reservation_policy == "TieredReservation" &&
      !k8s::FeatureEnabled(config.feature_gates, "MemoryQoS")) {
    out.push_back(
        "memoryReservationPolicy \"TieredReservation\" requires MemoryQoS feature gate to be enabled");
  }
  const int64_t ids = config.user_namespaces_ids_per_pod;
  if (ids < 65536 || ids % 65536 != 0 || ids > kMostIds) {
    out.push_back(fmt::format("userNamespaces.idsPerPod {} must be a multiple of 65536, and at most {}", ids,
                              kMostIds));
  }
  if (config.container_runtime_endpoint.empty()) {
    out.push_back("the containerRuntimeEndpoint was not specified or empty");
  }
  if (config.memory_throttling_factor <= 0 || config.memory_throttling_factor > 1) {
    out.push_back(
        fmt::format("memoryThrottlingFactor {} must be greater than 0 and less than or equal to 1.0",
                    config.memory_throttling_factor));
  }
  if (config.enable_system_log_query && !k8s::FeatureEnabled(config.feature_gates, "NodeLogQuery")) {
    out.push_back("NodeLogQuery feature gate is required for enableSystemLogQuery");
  }
  if (config.enable_system_log_query && !config.enable_system_log_handler) {
    out.push_back("enableSystemLogHandler is required for enableSystemLogQuery");
  }
  if (config.container_log_max_workers < 1) {
    out.push_back("containerLogMaxWorkers must be greater than or equal to 1");
  }
  if (config.container_log_max_files <= 1) out.push_back("containerLogMaxFiles must be greater than 1");
}

}  // namespace

Result<> ValidateKubeletConfig(const KubeletConfig& config) {
  KEELSON_RETURN_IF_ERROR(k8s::CheckFeatureGates(config.feature_gates));
  Problems problems;
  for (const Range& range : kRanges) {
    const int64_t value = config.*range.place;
    if (value < range.least || value > range.most) {
      problems.push_back(fmt::format("{} {} {}", range.name, value, range.rule));
    }
  }
  for (const Choice& choice : kChoices) {
    const std::string& value = config.*choice.place;
    if (std::find(choice.values.begin(), choice.values.end(), value) == choice.values.end()) {
      problems.push_back(fmt::format(fmt::runtime(choice.message), value));
    }
  }
  CheckDurations(config, problems);
  CheckTogether(config, problems);
  CheckParts(config, problems);
  if (problems.empty()) return {};
  std::string all;
  for (const std::string& problem : problems) {
    all += (all.empty() ? "" : ", ") + ("invalid configuration: " + problem);
  }
  if (problems.size() > 1) all = "[" + all + "]";
  return Error(Code::kInvalid,
               "failed to validate kubelet configuration, error: " + all + ", path: KubeletConfiguration");
}

}  // namespace keelson::kubelet
