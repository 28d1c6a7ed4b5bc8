#include "kubelet/config/validate_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/api/duration.h"
#include "lib/api/quantity.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

namespace {

using Problems = std::vector<std::string>;

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
        std::count(list.begin(), list.end(), name + "-compressible")) {
      out.push_back(fmt::format("both \"{0}\" and \"{0}-compressible\" cannot be specified together in {1}",
                                name, kWhere));
    }
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
      if (config.enforce_node_allocatable.size() > 1) {
        out.push_back(
            fmt::format("{} may not contain additional enforcements when \"none\" is specified", kWhere));
      }
      continue;
    }
    const bool system = level[0] == 's', kube = level[0] == 'k';
    if (system && config.system_reserved_cgroup.empty()) {
      out.push_back(
          fmt::format("systemReservedCgroup (--system-reserved-cgroup) must be specified when "
                      "\"system-reserved\" or \"system-reserved-compressible\" included in {}",
                      kWhere));
    }
    if (kube && config.kube_reserved_cgroup.empty()) {
      out.push_back(
          fmt::format("kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "
                      "\"kube-reserved\" or \"kube-reserved-compressible\" included in {}",
                      kWhere));
    }
    if (!config.cgroups_per_qos) {
      out.push_back(
          fmt::format("cgroupsPerQOS (--cgroups-per-qos) must be set to true when \"{}\" contained in {}",
                      level, kWhere));
    }
  }
}

void CheckLogsDir(const std::string& dir, Problems& out) {
  if (dir.empty() || dir[0] != '/') {
    out.push_back(fmt::format("pod logs path \"{}\" must be absolute path", dir));
  }
  const bool clean =
      dir == "/" || (dir.find("//") == std::string::npos && (dir + "/").find("/./") == std::string::npos &&
                     (dir + "/").find("/../") == std::string::npos && dir.back() != '/');
  if (dir.empty()) out.push_back("podLogsDir was not specified");
  if (!dir.empty() && !clean) out.push_back(fmt::format("pod logs path \"{}\" must be normalized", dir));
  if (std::any_of(dir.begin(), dir.end(), [](char c) { return static_cast<unsigned char>(c) > 127; })) {
    out.push_back(fmt::format("pod logs path \"{}\" mut contains ASCII characters only", dir));
  }
}

void CheckTelemetry(const KubeletConfig& config, Problems& out) {
  const std::string& endpoint = config.tracing_endpoint;
  const int32_t rate = config.tracing_sampling_rate_per_million;
  if (rate < 0 || rate > 1000000) {
    out.push_back(
        fmt::format("tracing.samplingRatePerMillion: Invalid value: {}: sampling rate {}", rate,
                    rate < 0 ? "must be positive" : "per million must be less than or equal to one million"));
  }
  const size_t scheme = endpoint.find("://");
  const std::string kind = scheme == std::string::npos ? "" : endpoint.substr(0, scheme);
  if (scheme != std::string::npos && kind != "dns" && kind != "unix") {
    out.push_back(
        fmt::format("tracing.endpoint: Invalid value: \"{}\": unsupported scheme: {}.  Options are "
                    "none, dns, or unix",
                    endpoint, kind));
  }
  if (config.logging_flush_frequency < Duration(0)) {
    out.push_back(
        fmt::format("logging.flushFrequency: Invalid value: {}: Must be greater than or equal to 0",
                    api::FormatGoDuration(std::chrono::nanoseconds(config.logging_flush_frequency).count())));
  }
  if (config.logging_verbosity < 0) {
    out.push_back(fmt::format("logging.verbosity: Invalid value: {}: Must be greater than or equal to 0",
                              config.logging_verbosity));
  }
}

// Whether keys and values are labels is for the API server to say.
void CheckTaints(const KubeletConfig& config, Problems& out) {
  for (const NodeTaint& taint : config.register_with_taints) {
    if (taint.key.empty() ||
        (taint.effect != "NoSchedule" && taint.effect != "PreferNoSchedule" && taint.effect != "NoExecute")) {
      out.push_back(fmt::format("invalid taint: {{{} {} {}}}", taint.key, taint.value, taint.effect));
    }
  }
}

void CheckReservedMemory(const KubeletConfig& config, Problems& out) {
  std::set<std::pair<int32_t, std::string>> seen;
  for (const MemoryReservation& reservation : config.reserved_memory) {
    for (const auto& [resource, amount] : reservation.limits) {
      const int32_t node = reservation.numa_node;
      if (resource != "memory" && !k8s::IsHugePages(resource)) {
        out.push_back(
            fmt::format("the limit type \"{}\" for NUMA node {} is not supported, only [memory "
                        "hugepages-<HugePageSize>] is accepted",
                        resource, node));
      }
      auto parsed = api::Amount::Parse(amount);
      if (!parsed || parsed->IsZero()) {
        out.push_back(fmt::format("reserved memory may not be zero for NUMA node {} and resource \"{}\"",
                                  node, resource));
      }
      if (!seen.insert({node, resource}).second) {
        out.push_back(
            fmt::format("the reserved memory has a duplicate value for NUMA node {} and resource \"{}\"",
                        node, resource));
      }
    }
  }
}

}  // namespace

void CheckParts(const KubeletConfig& config, Problems& problems) {
  CheckEnforcement(config, problems);
  CheckLogsDir(config.pod_logs_dir, problems);
  CheckTelemetry(config, problems);
  CheckTaints(config, problems);
  CheckReservedMemory(config, problems);
}

}  // namespace keelson::kubelet
