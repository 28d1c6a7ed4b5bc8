#include "kubelet/cm/topology/topology_manager.h"

#include <charconv>

#include "kubelet/cm/topology/alignment.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

const std::map<std::string, TopologyPolicy>& Policies() {
  static const std::map<std::string, TopologyPolicy> policies = {
      {"none", TopologyPolicy::kNone},
      {"best-effort", TopologyPolicy::kBestEffort},
      {"restricted", TopologyPolicy::kRestricted},
      {"single-numa-node", TopologyPolicy::kSingleNumaNode}};
  return policies;
}

metrics::Family& Requests() {
  static metrics::Family& family =
      metrics::Counter("kubelet_topology_manager_admission_requests_total",
                       "Pods whose resources had to be brought together on NUMA nodes.", {});
  return family;
}

metrics::Family& Refusals() {
  static metrics::Family& family =
      metrics::Counter("kubelet_topology_manager_admission_errors_total",
                       "Pods that were refused because their resources are not together.", {});
  return family;
}

// In milliseconds.
std::vector<double> AdmissionBuckets() {
  std::vector<double> bounds;
  for (double bound = 0.05; bounds.size() < 15; bound *= 2) bounds.push_back(bound);
  return bounds;
}

Result<bool> ParseBool(const std::string& name, const std::string& value) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  return Error(Code::kInvalid, "bad value for option \"" + name + "\": \"" + value + "\" is not a boolean");
}

// Only one policy promises that what is given is of one node.
void CountScope(const TopologyOptions& options, bool aligned) {
  if (options.merge.policy == TopologyPolicy::kSingleNumaNode) {
    CountAlignment(options.scope == TopologyScope::kPod ? "pod" : "container", "numa_node", aligned);
  }
}

}  // namespace

Result<TopologyOptions> ParseTopologyOptions(const std::string& policy, const std::string& scope,
                                             const std::map<std::string, std::string>& options) {
  TopologyOptions out;
  auto found = Policies().find(policy.empty() ? "none" : policy);
  if (found == Policies().end()) return Error(Code::kInvalid, "unknown policy: \"" + policy + "\"");
  out.merge.policy = found->second;
  if (scope != "container" && scope != "pod" && !scope.empty()) {
    return Error(Code::kInvalid, "unknown scope: \"" + scope + "\"");
  }
  out.scope = scope == "pod" ? TopologyScope::kPod : TopologyScope::kContainer;
  for (const auto& [name, value] : options) {
    if (name == "prefer-closest-numa-nodes") {
      KEELSON_ASSIGN_OR_RETURN(out.merge.prefer_closest, ParseBool(name, value));
    } else if (name == "max-allowable-numa-nodes") {
      auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), out.max_numa_nodes);
      if (problem != std::errc() || end != value.data() + value.size() || out.max_numa_nodes < 8) {
        return Error(Code::kInvalid, "bad value for option \"" + name + "\": the minimum is 8");
      }
    } else {
      return Error(Code::kInvalid, "unknown Topology Manager Policy option: \"" + name + "\"");
    }
  }
  return out;
}

Result<std::unique_ptr<TopologyManager>> TopologyManager::Make(const MachineTopology& machine,
                                                               const TopologyOptions& options,
                                                               std::vector<ResourceProvider*> providers) {
  if (options.merge.policy != TopologyPolicy::kNone &&
      machine.nodes.size() > static_cast<size_t>(options.max_numa_nodes)) {
    return Error(Code::kInvalid, "unsupported on machines with more than " +
                                     std::to_string(options.max_numa_nodes) + " NUMA Nodes");
  }
  return std::unique_ptr<TopologyManager>(new TopologyManager(machine, options, std::move(providers)));
}

std::optional<k8s::AdmitFailure> TopologyManager::Admit(const corev1::Pod& pod) {
  static metrics::Histogram& duration =
      metrics::Histograms("kubelet_topology_manager_admission_duration_ms",
                          "Duration in milliseconds to serve a pod admission request.", AdmissionBuckets())
          .HistogramWith();
  MutexLock lock(admission_);
  Stopwatch watch;
  auto failure = AdmitPod(pod);
  duration.Observe(watch.Seconds() * 1000);
  if (failure) {
    for (ResourceProvider* provider : providers_) provider->Release(pod.metadata().uid());
  }
  return failure;
}

std::optional<k8s::AdmitFailure> TopologyManager::AdmitPod(const corev1::Pod& pod) {
  const k8s::AdmitFailure apart{"TopologyAffinityError",
                                "Resources cannot be allocated with Topology locality"};
  TopologyHint affinity;
  bool whole = options_.scope == TopologyScope::kPod && options_.merge.policy != TopologyPolicy::kNone;
  if (options_.merge.policy != TopologyPolicy::kNone) Requests().With().Increment();
  if (whole) {
    std::vector<TopologyHints> hints;
    for (ResourceProvider* provider : providers_) hints.push_back(provider->PodHints(pod));
    MergedHint merged = MergeHints(hints, machine_, options_.merge);
    if (!merged.admit) {
      Refusals().With().Increment();
      CountScope(options_, false);
      return apart;
    }
    affinity = merged.hint;
  }
  for (const auto* list : {&pod.spec().init_containers(), &pod.spec().containers()}) {
    for (const corev1::Container& container : *list) {
      auto failure = whole ? Allocate(pod, container, affinity) : AdmitContainer(pod, container);
      if (failure) return failure;
    }
  }
  if (whole) CountScope(options_, true);
  return std::nullopt;
}

std::optional<k8s::AdmitFailure> TopologyManager::AdmitContainer(const corev1::Pod& pod,
                                                                 const corev1::Container& container) {
  if (options_.merge.policy == TopologyPolicy::kNone) return Allocate(pod, container, {});
  std::vector<TopologyHints> hints;
  for (ResourceProvider* provider : providers_) hints.push_back(provider->Hints(pod, container));
  MergedHint merged = MergeHints(hints, machine_, options_.merge);
  if (merged.admit) {
    auto failure = Allocate(pod, container, merged.hint);
    if (!failure) CountScope(options_, true);
    return failure;
  }
  Refusals().With().Increment();
  CountScope(options_, false);
  return k8s::AdmitFailure{"TopologyAffinityError", "Resources cannot be allocated with Topology locality"};
}

std::optional<k8s::AdmitFailure> TopologyManager::Allocate(const corev1::Pod& pod,
                                                           const corev1::Container& container,
                                                           const TopologyHint& affinity) {
  for (ResourceProvider* provider : providers_) {
    if (auto failure = provider->Allocate(pod, container, affinity)) return failure;
  }
  return std::nullopt;
}

Result<> TopologyManager::Configure(const corev1::Pod& pod, const corev1::Container& container,
                                    cri::ContainerConfig& config, std::stop_token stop) {
  for (ResourceProvider* provider : providers_) {
    KEELSON_RETURN_IF_ERROR(provider->Configure(pod, container, config, stop));
  }
  return {};
}

void TopologyManager::Release(const std::string& uid) {
  for (ResourceProvider* provider : providers_) provider->Release(uid);
}

void TopologyManager::RemoveStaleState(const std::set<std::string>& uids) {
  for (ResourceProvider* provider : providers_) {
    for (const std::string& uid : provider->Uids()) {
      if (!uids.count(uid)) provider->Release(uid);
    }
  }
}

}  // namespace keelson::kubelet
