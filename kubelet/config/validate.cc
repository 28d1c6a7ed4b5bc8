#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "kubelet/config/config.h"
#include "kubelet/config/feature_gates.h"
#include "lib/api/duration.h"

namespace keelson::kubelet {

namespace {

using C = KubeletConfig;
using Problems = std::vector<std::string>;
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

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
    if (value < Duration(0) || (value > Duration(0) && value < seconds(1)))
      out.push_back(fmt::format("{} {{{}}} must be either zero or otherwise >= 1 sec", name, Text(value)));
  };
  if (config.cpu_cfs_quota_period != std::chrono::milliseconds(100) &&
      !FeatureEnabled(config.feature_gates, "CustomCPUCFSQuotaPeriod"))
    out.push_back(
        fmt::format("cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} requires feature gate "
                    "CustomCPUCFSQuotaPeriod",
                    Text(config.cpu_cfs_quota_period)));
  else if (config.cpu_cfs_quota_period < std::chrono::milliseconds(1) ||
           config.cpu_cfs_quota_period > seconds(1))
    out.push_back(
        fmt::format("cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{}}} must be between 1ms and 1sec, "
                    "inclusive",
                    Text(config.cpu_cfs_quota_period)));
  const Duration least = config.image_minimum_gc_age, most = config.image_maximum_gc_age;
  if (least < Duration(0))
    out.push_back(fmt::format("imageMinimumGCAge {} must not be negative", Text(least)));
  if (most < Duration(0)) out.push_back(fmt::format("imageMaximumGCAge {} must not be negative", Text(most)));
  if (most > Duration(0) && most <= least)
    out.push_back(fmt::format("imageMaximumGCAge {} must be greater than imageMinimumGCAge {}", Text(most),
                              Text(least)));
  if (config.shutdown_grace_period_critical_pods > config.shutdown_grace_period)
    out.push_back(fmt::format("shutdownGracePeriodCriticalPods {{{}}} must be <= shutdownGracePeriod {{{}}}",
                              Text(config.shutdown_grace_period_critical_pods),
                              Text(config.shutdown_grace_period)));
  whole_second("shutdownGracePeriod", config.shutdown_grace_period);
  whole_second("shutdownGracePeriodCriticalPods", config.shutdown_grace_period_critical_pods);
  if (!config.shutdown_grace_period_by_pod_priority.empty() &&
      (config.shutdown_grace_period > Duration(0) ||
       config.shutdown_grace_period_critical_pods > Duration(0)))
    out.push_back(
        "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time");
  const Duration restart = config.max_container_restart_period;
  if (restart < seconds(1) || restart > seconds(300))
    out.push_back(fmt::format(
        "CrashLoopBackOff.MaxContainerRestartPeriod (got: {} seconds) must be set between 1s and 300s",
        std::chrono::duration<double>(restart).count()));
  if (config.container_log_monitor_interval < seconds(3))
    out.push_back("containerLogMonitorInterval must be a positive time duration greater than or equal to 3s");
}

void CheckEnforcement(const KubeletConfig& config, Problems& out) {
  constexpr char kWhere[] = "enforceNodeAllocatable (--enforce-node-allocatable)";
  static const std::set<std::string> kKnown = {"pods",
                                               "system-reserved",
                                               "system-reserved-compressible",
                                               "kube-reserved",
                                               "kube-reserved-compressible",
                                               "none"};
  std::set<std::string> seen;
  auto both = [&](const std::string& name) {
    const auto& list = config.enforce_node_allocatable;
    if (std::count(list.begin(), list.end(), name) &&
        std::count(list.begin(), list.end(), name + "-compressible"))
      out.push_back(fmt::format("both \"{0}\" and \"{0}-compressible\" cannot be specified together in {1}",
                                name, kWhere));
  };
  both("system-reserved");
  both("kube-reserved");
  for (const std::string& level : config.enforce_node_allocatable) {
    if (!seen.insert(level).second) {
      out.push_back(fmt::format("duplicated enforcements \"{}\" in {}", level, kWhere));
      continue;
    }
    if (!kKnown.count(level)) {
      out.push_back(fmt::format(
          "option \"{}\" specified for {}. Valid options are \"pods\", \"system-reserved\", "
          "\"system-reserved-compressible\", \"kube-reserved\", \"kube-reserved-compressible\" or \"none\"",
          level, kWhere));
      continue;
    }
    if (level == "none") {
      if (config.enforce_node_allocatable.size() > 1)
        out.push_back(
            fmt::format("{} may not contain additional enforcements when \"none\" is specified", kWhere));
      continue;
    }
    const bool system = level[0] == 's', kube = level[0] == 'k';
    if (system && config.system_reserved_cgroup.empty())
      out.push_back(
          fmt::format("systemReservedCgroup (--system-reserved-cgroup) must be specified when "
                      "\"system-reserved\" or \"system-reserved-compressible\" included in {}",
                      kWhere));
    if (kube && config.kube_reserved_cgroup.empty())
      out.push_back(
          fmt::format("kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "
                      "\"kube-reserved\" or \"kube-reserved-compressible\" included in {}",
                      kWhere));
    if (!config.cgroups_per_qos)
      out.push_back(
          fmt::format("cgroupsPerQOS (--cgroups-per-qos) must be set to true when \"{}\" contained in {}",
                      level, kWhere));
  }
}

void CheckLogsDir(const std::string& dir, Problems& out) {
  if (dir.empty() || dir[0] != '/')
    out.push_back(fmt::format("pod logs path \"{}\" must be absolute path", dir));
  const bool clean =
      dir == "/" || (dir.find("//") == std::string::npos && (dir + "/").find("/./") == std::string::npos &&
                     (dir + "/").find("/../") == std::string::npos && dir.back() != '/');
  if (!dir.empty() && !clean) out.push_back(fmt::format("pod logs path \"{}\" must be normalized", dir));
  if (std::any_of(dir.begin(), dir.end(), [](char c) { return static_cast<unsigned char>(c) > 127; }))
    out.push_back(fmt::format("pod logs path \"{}\" mut contains ASCII characters only", dir));
}

void CheckTogether(const KubeletConfig& config, Problems& out) {
  if (config.node_lease_duration_seconds <= 0)
    out.push_back("nodeLeaseDurationSeconds must be greater than 0");
  if (!config.system_cgroups.empty() && config.cgroup_root.empty())
    out.push_back(
        "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified");
  if (config.image_gc_low_threshold_percent >= config.image_gc_high_threshold_percent)
    out.push_back(
        fmt::format("imageGCLowThresholdPercent (--image-gc-low-threshold) {} must be less than "
                    "imageGCHighThresholdPercent (--image-gc-high-threshold) {}",
                    config.image_gc_low_threshold_percent, config.image_gc_high_threshold_percent));
  if (config.max_open_files < 0)
    out.push_back(fmt::format("maxOpenFiles (--max-open-files) {} {}", config.max_open_files, kNotNegative));
  if (config.serialize_image_pulls && config.max_parallel_image_pulls > 1)
    out.push_back(
        "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
        "(--serialize-image-pulls) is set to false");
  if (config.server_tls_bootstrap && !FeatureEnabled(config.feature_gates, "RotateKubeletServerCertificate"))
    out.push_back("serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate");
  if (config.run_once)
    out.push_back("runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set");
  if (!config.reserved_system_cpus.empty() &&
      (!config.system_reserved_cgroup.empty() || !config.kube_reserved_cgroup.empty()))
    out.push_back(
        "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
        "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)");
  if (!config.preloaded_images_verification_allowlist.empty() &&
      config.image_pull_credentials_verification_policy != "NeverVerifyAllowlistedImages")
    out.push_back(
        "can't set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is "
        "not \"NeverVerifyAllowlistedImages\"");
  if (config.memory_throttling_factor <= 0 || config.memory_throttling_factor > 1)
    out.push_back(
        fmt::format("memoryThrottlingFactor {} must be greater than 0 and less than or equal to 1.0",
                    config.memory_throttling_factor));
  if (config.enable_system_log_query && !FeatureEnabled(config.feature_gates, "NodeLogQuery"))
    out.push_back("NodeLogQuery feature gate is required for enableSystemLogQuery");
  if (config.enable_system_log_query && !config.enable_system_log_handler)
    out.push_back("enableSystemLogHandler is required for enableSystemLogQuery");
  if (config.container_log_max_workers < 1)
    out.push_back("containerLogMaxWorkers must be greater than or equal to 1");
  if (config.container_log_max_files <= 1) out.push_back("containerLogMaxFiles must be greater than 1");
}

}  // namespace

Result<> ValidateKubeletConfig(const KubeletConfig& config) {
  RETURN_IF_ERROR(CheckFeatureGates(config.feature_gates));
  Problems problems;
  for (const Range& range : kRanges) {
    const int64_t value = config.*range.place;
    if (value < range.least || value > range.most)
      problems.push_back(fmt::format("{} {} {}", range.name, value, range.rule));
  }
  for (const Choice& choice : kChoices) {
    const std::string& value = config.*choice.place;
    if (std::find(choice.values.begin(), choice.values.end(), value) == choice.values.end())
      problems.push_back(fmt::format(fmt::runtime(choice.message), value));
  }
  CheckDurations(config, problems);
  CheckTogether(config, problems);
  CheckEnforcement(config, problems);
  CheckLogsDir(config.pod_logs_dir, problems);
  for (const NodeTaint& taint : config.register_with_taints)
    if (taint.effect != "NoSchedule" && taint.effect != "PreferNoSchedule" && taint.effect != "NoExecute")
      problems.push_back(fmt::format("invalid taint: {{{} {} {}}}", taint.key, taint.value, taint.effect));
  if (problems.empty()) return {};
  std::string all;
  for (const std::string& problem : problems)
    all += (all.empty() ? "" : ", ") + ("invalid configuration: " + problem);
  if (problems.size() > 1) all = "[" + all + "]";
  return Error(Code::kInvalid,
               "failed to validate kubelet configuration, error: " + all + ", path: KubeletConfiguration");
}

}  // namespace keelson::kubelet
