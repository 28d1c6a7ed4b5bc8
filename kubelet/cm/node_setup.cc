#include "kubelet/cm/node_setup.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "kubelet/cm/cgroups/qos_cgroup_limits.h"
#include "kubelet/cm/topology/cpu_set.h"
#include "kubelet/container/resources.h"
#include "kubelet/node/addresses.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::kubelet {

namespace {

// Small letters, no blanks around it.
std::string NodeName(const KubeletFlags& flags) {
  const std::string name = flags.hostname_override.empty() ? HostName() : flags.hostname_override;
  return Lower(Trim(name));
}

int MaxPods(const KubeletConfig& config, int cpus) {
  return config.pods_per_core > 0 ? std::min(config.max_pods, config.pods_per_core * cpus) : config.max_pods;
}

// What the API server and the scheduler have to know of before they send pods here, or change them. Sorted.
std::vector<std::string> DeclaredFeatures(const KubeletConfig& config) {
  auto on = [&config](const char* gate) { return k8s::FeatureEnabled(config.feature_gates, gate); };
  if (!on("NodeDeclaredFeatures")) return {};
  const std::string& policy = config.cpu_manager_policy;
  std::vector<std::string> out;
  if (on("ExtendWebSocketsToKubelet")) out.push_back("ExtendWebSocketsToKubelet");
  if (policy == "none" || (policy == "static" && on("InPlacePodVerticalScalingExclusiveCPUs"))) {
    out.push_back("GuaranteedQoSPodCPUResize");
  }
  for (const char* gate :
       {"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits"}) {
    if (on(gate)) out.push_back(gate);
  }
  return out;
}

}  // namespace

Result<> CheckNodeLabels(const StringMap& labels) {
  static const std::set<std::string> kOwn = {"kubernetes.io/hostname",
                                             "kubernetes.io/arch",
                                             "kubernetes.io/os",
                                             "beta.kubernetes.io/arch",
                                             "beta.kubernetes.io/os",
                                             "beta.kubernetes.io/instance-type",
                                             "node.kubernetes.io/instance-type",
                                             "failure-domain.beta.kubernetes.io/region",
                                             "failure-domain.beta.kubernetes.io/zone",
                                             "failure-domain.kubernetes.io/region",
                                             "failure-domain.kubernetes.io/zone",
                                             "topology.kubernetes.io/region",
                                             "topology.kubernetes.io/zone"};
  static constexpr std::string_view kOpen[] = {"kubelet.kubernetes.io", "node.kubernetes.io"};
  std::string unknown;
  for (const auto& [key, value] : labels) {
    const std::string domain = key.substr(0, key.find('/') == std::string::npos ? 0 : key.find('/'));
    const bool reserved = domain == "kubernetes.io" || domain == "k8s.io" ||
                          domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io");
    const bool open = std::any_of(std::begin(kOpen), std::end(kOpen), [&](std::string_view name) {
      return domain == name || domain.ends_with("." + std::string(name));
    });
    if (reserved && !open && !kOwn.count(key)) unknown += (unknown.empty() ? "" : " ") + key;
  }
  if (unknown.empty()) return {};
  return Error(Code::kInvalid,
               "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [" + unknown +
                   "]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix "
                   "(kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set");
}

bool Enforces(const KubeletConfig& config, const std::string& level) {
  const auto& levels = config.enforce_node_allocatable;
  return std::find(levels.begin(), levels.end(), level) != levels.end();
}

Reservations MakeReservations(const Settings& settings, const Machine& machine) {
  const KubeletConfig& config = settings.config;
  Reservations out{config.system_reserved, config.kube_reserved, config.eviction_hard,
                   MaxPods(config, machine.cpus)};
  out.local_storage = config.local_storage_capacity_isolation;
  if (settings.flags.allocatable_ignores_eviction) out.eviction_hard.clear();
  // CPUs that are named stand for both amounts. A list that cannot be read ends the start elsewhere.
  if (auto named = CpuSet::Parse(config.reserved_system_cpus); named && !named->empty()) {
    out.kube.erase("cpu");
    out.system["cpu"] = std::to_string(named->size());
  }
  return out;
}

NodeOptions MakeNodeOptions(const Settings& settings, const std::string& runtime) {
  const KubeletConfig& config = settings.config;
  NodeOptions out;
  out.hostname = out.name = NodeName(settings.flags);
  const std::vector<std::string> given =
      ParseNodeIps(settings.flags.node_ip).value_or(std::vector<std::string>());
  out.ips_given = !given.empty() && !IsAnyAddress(given.front());
  out.ips = ChooseNodeIps(given, out.hostname);
  out.external_cloud = settings.flags.cloud_provider == "external";
  out.controller_attach = config.enable_controller_attach_detach;
  out.reset_extended = !PathExists(settings.flags.root_dir + "/device-plugins/kubelet_internal_checkpoint");
  out.root_dir = settings.flags.root_dir;
  out.port = static_cast<uint16_t>(config.port);
  out.runtime_version = runtime;
  const Machine machine = ReadMachine(out.root_dir);
  out.reservations = MakeReservations(settings, machine);
  out.register_node = config.register_node;
  out.update_frequency = config.node_status_update_frequency;
  out.report_frequency = config.node_status_report_frequency;
  out.lease_seconds = config.node_lease_duration_seconds;
  out.max_images = config.node_status_max_images;
  out.declared_features = DeclaredFeatures(config);
  out.labels = {{"kubernetes.io/hostname", out.hostname},
                {"kubernetes.io/os", "linux"},
                {"kubernetes.io/arch", machine.architecture},
                {"beta.kubernetes.io/os", "linux"},
                {"beta.kubernetes.io/arch", machine.architecture}};
  for (const auto& [key, value] : settings.flags.node_labels) out.labels[key] = value;
  auto taint = [&out](const std::string& key, const std::string& value, const std::string& effect) {
    corev1::Taint& item = out.taints.emplace_back();
    item.set_key(key);
    item.set_value(value);
    item.set_effect(effect);
  };
  for (const NodeTaint& item : config.register_with_taints) taint(item.key, item.value, item.effect);
  // Taken away by the cloud's controller once it has looked at the node.
  if (out.external_cloud) taint("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule");
  out.provider_id = config.provider_id;
  return out;
}

NodeContext MakeNodeContext(const Settings& settings, const NodeOptions& node, const Machine& machine,
                            bool cgroup_v2) {
  const KubeletConfig& config = settings.config;
  NodeContext out;
  out.paths = {settings.flags.root_dir, config.pod_logs_dir};
  out.node_name = node.name;
  out.node_ips = node.ips;
  out.allocatable = AllocatableOf(machine, node.reservations);
  out.memory_capacity = machine.memory_bytes;
  out.swap_capacity = machine.swap_bytes;
  for (const auto& [size, bytes] : machine.huge_pages) {
    out.huge_page_sizes.push_back(HugePageSizeName(api::Amount::Parse(size).value_or(api::Amount()).Value()));
  }
  out.cluster_domain = config.cluster_domain;
  out.cluster_dns = config.cluster_dns;
  out.resolv_conf = config.resolv_conf;
  out.cpu_cfs_quota = config.cpu_cfs_quota;
  out.cpu_cfs_period_us =
      std::chrono::duration_cast<std::chrono::microseconds>(config.cpu_cfs_quota_period).count();
  out.cgroup_v2 = cgroup_v2;
  out.exclusive_cpus = config.cpu_manager_policy == "static" &&
                       k8s::FeatureEnabled(config.feature_gates, "DisableCPUQuotaWithExclusiveCPUs");
  out.single_process_oom_kill = config.single_process_oom_kill;
  out.limits_swap = machine.limits_swap;
  out.limited_swap = config.swap_behavior == "LimitedSwap";
  out.memory_qos = {k8s::FeatureEnabled(config.feature_gates, "MemoryQoS"),
                    config.memory_reservation_policy == "TieredReservation", config.memory_throttling_factor};
  out.stop_signals = k8s::FeatureEnabled(config.feature_gates, "ContainerStopSignals");
  out.seccomp_default = config.seccomp_default;
  out.apparmor = ReadFile("/sys/module/apparmor/parameters/enabled").value_or("").substr(0, 1) == "Y";
  return out;
}

namespace {

api::Amount AmountOf(const StringMap& amounts, const char* name) {
  auto it = amounts.find(name);
  return it == amounts.end() ? api::Amount() : api::Amount::Parse(it->second).value_or(api::Amount());
}

void AddReserved(const KubeletConfig& config, const std::string& level, const char* what,
                 const std::string& path, const StringMap& amounts, CgroupOptions& out) {
  const bool all = Enforces(config, level);
  if (!all && !Enforces(config, level + "-compressible")) return;
  ReservedCgroup reserved{what, path, {}};
  if (const int64_t milli = AmountOf(amounts, "cpu").MilliValue(); milli > 0) {
    reserved.limits.cpu_shares = MilliCpuToShares(milli);
  }
  const int64_t memory = AmountOf(amounts, "memory").Value(), pids = AmountOf(amounts, "pid").Value();
  if (all && memory > 0) reserved.limits.memory_limit_bytes = memory;
  if (all && pids > 0) reserved.limits.pids_max = pids;
  out.reserved.push_back(std::move(reserved));
}

}  // namespace

CgroupOptions MakeCgroupOptions(const Settings& settings, const Machine& machine) {
  const KubeletConfig& config = settings.config;
  CgroupOptions out;
  out.root = config.cgroup_root;
  out.per_qos = config.cgroups_per_qos;
  out.pod_pids_limit = config.pod_pids_limit;
  out.pressure = k8s::FeatureEnabled(config.feature_gates, "KubeletPSI");
  if (k8s::FeatureEnabled(config.feature_gates, "QOSReserved")) {
    out.memory_percent_reserved = ParseQosReserved(config.qos_reserved).value_or(std::nullopt);
  }
  // What is not set aside, eviction thresholds included: crossing them is what eviction is for.
  Reservations reservations = MakeReservations(settings, machine);
  reservations.eviction_hard.clear();
  const k8s::ResourceList pods = AllocatableOf(machine, reservations);
  out.pods_memory = k8s::AmountOf(pods, "memory").Value();
  if (Enforces(config, "pods")) {
    out.all_pods.cpu_shares = MilliCpuToShares(k8s::AmountOf(pods, "cpu").MilliValue());
    out.all_pods.memory_limit_bytes = out.pods_memory;
    const int64_t reserved =
        AmountOf(config.system_reserved, "pid").Value() + AmountOf(config.kube_reserved, "pid").Value();
    if (machine.max_pids > reserved) out.all_pods.pids_max = machine.max_pids - reserved;
  }
  AddReserved(config, "system-reserved", "System Reserved", config.system_reserved_cgroup,
              config.system_reserved, out);
  AddReserved(config, "kube-reserved", "Kube Reserved", config.kube_reserved_cgroup, config.kube_reserved,
              out);
  return out;
}

EvictionOptions MakeEvictionOptions(const KubeletConfig& config) {
  EvictionOptions out;
  out.hard = config.eviction_hard;
  out.soft = config.eviction_soft;
  out.soft_grace_period = config.eviction_soft_grace_period;
  out.minimum_reclaim = config.eviction_minimum_reclaim;
  out.pressure_transition_period = config.eviction_pressure_transition_period;
  out.max_pod_grace_period = config.eviction_max_pod_grace_period;
  out.enforce_allocatable = Enforces(config, "pods");
  out.local_storage = config.local_storage_capacity_isolation;
  return out;
}

}  // namespace keelson::kubelet
