#include "lib/k8s/pods/quota.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::k8s {
namespace {

using api::Amount;
using Names = std::set<std::string, std::less<>>;

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kDevicesSuffix = ".deviceclass.resource.k8s.io/devices";
// The most devices that a request for all devices can get.
constexpr int64_t kMostDevices = 32;
constexpr std::string_view kClassSuffix = ".storageclass.storage.k8s.io/";
constexpr char kClassAnnotation[] = "volume.beta.kubernetes.io/storage-class";

// A quota may also use the plain names of these.
constexpr std::string_view kPlainCounts[] = {
    "configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "secrets",
    "services",   "resourcequotas"};
constexpr std::string_view kPodResources[] = {"cpu",          "memory",          "ephemeral-storage",
                                              "requests.cpu", "requests.memory", "requests.ephemeral-storage",
                                              "limits.cpu",   "limits.memory",   "limits.ephemeral-storage"};
// A quota of these requires every container to specify them.
constexpr std::string_view kMustBeSaid[] = {"cpu",        "memory",       "requests.cpu", "requests.memory",
                                            "limits.cpu", "limits.memory"};

template <size_t N>
bool Has(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool IsPod(const api::ResourceInfo& info) { return info.group.empty() && info.resource == "pods"; }
bool IsService(const api::ResourceInfo& info) { return info.group.empty() && info.resource == "services"; }
bool IsClaim(const api::ResourceInfo& info) {
  return info.group.empty() && info.resource == "persistentvolumeclaims";
}

bool IsDeviceClaim(const api::ResourceInfo& info) {
  return info.group == "resource.k8s.io" && info.resource == "resourceclaims";
}

// requests.example.com/gpu
bool IsExtendedForQuota(std::string_view name) {
  return name.starts_with(kRequests) && name.find('/') != std::string_view::npos &&
         name.find("kubernetes.io/") == std::string_view::npos;
}

ResourceList ComputeUsage(const ResourceList& requests, const ResourceList& limits) {
  ResourceList usage{{"pods", Amount::FromInt(1)}};
  for (const auto& [name, amount] : requests) {
    const bool basic = name == "cpu" || name == "memory" || name == "ephemeral-storage";
    if (basic || IsHugePages(name)) usage[name] = usage[std::string(kRequests) + name] = amount;
    if (IsExtendedResource(name)) usage[std::string(kRequests) + name] = amount;
  }
  for (std::string_view name : {"cpu", "memory", "ephemeral-storage"}) {
    if (auto found = limits.find(name); found != limits.end()) {
      usage["limits." + std::string(name)] = found->second;
    }
  }
  return usage;
}

void CountPod(const corev1::Pod& pod, WallTime now, ResourceList& usage) {
  if (IsTerminal(pod)) return;
  const metav1::ObjectMeta& meta = pod.metadata();
  if (meta.has_deletion_timestamp() && meta.has_deletion_grace_period_seconds() &&
      now > api::FromTime(meta.deletion_timestamp()) + Span(meta.deletion_grace_period_seconds())) {
    return;
  }
  const PodResourcesOptions options{.use_status = true};
  Add(usage, ComputeUsage(PodRequests(pod, options), PodLimits(pod, options)));
}

void CountService(const corev1::Service& service, ResourceList& usage) {
  const corev1::ServiceSpec& spec = service.spec();
  int64_t node_ports = 0, balancers = 0;
  if (spec.type() == "NodePort") node_ports = spec.ports_size();
  if (spec.type() == "LoadBalancer") {
    balancers = 1;
    const bool all =
        !spec.has_allocate_load_balancer_node_ports() || spec.allocate_load_balancer_node_ports();
    for (const corev1::ServicePort& port : spec.ports()) node_ports += all || port.node_port() != 0;
  }
  usage["services"] = Amount::FromInt(1);
  usage["services.nodeports"] = Amount::FromInt(node_ports);
  usage["services.loadbalancers"] = Amount::FromInt(balancers);
}

std::string ClassOf(const corev1::PersistentVolumeClaim& claim) {
  const auto& annotations = claim.metadata().annotations();
  auto found = annotations.find(kClassAnnotation);
  return found != annotations.end() ? found->second : claim.spec().storage_class_name();
}

void CountClaim(const corev1::PersistentVolumeClaim& claim, ResourceList& usage) {
  const std::string storage_class = ClassOf(claim);
  usage["persistentvolumeclaims"] = Amount::FromInt(1);
  std::string prefix = storage_class + std::string(kClassSuffix);
  if (!storage_class.empty()) usage[prefix + "persistentvolumeclaims"] = Amount::FromInt(1);
  ResourceList requests = ToResourceList(claim.spec().resources().requests());
  auto storage = requests.find("storage");
  if (storage == requests.end()) return;
  // During an expansion, or after one that failed, the larger amount counts.
  Amount amount = storage->second;
  const Amount allocated = AmountOf(ToResourceList(claim.status().allocated_resources()), "storage");
  if (allocated > amount) amount = allocated;
  usage["requests.storage"] = amount;
  if (!storage_class.empty()) usage[prefix + "requests.storage"] = amount;
}

void CountDevices(const api::resource::v1::ResourceClaim& claim, ResourceList& usage) {
  auto number_of = [](const auto& request) {
    return Amount::FromInt(request.allocation_mode() == "All" ? kMostDevices : request.count());
  };
  for (const auto& request : claim.spec().devices().requests()) {
    ResourceList wanted;
    if (request.has_exactly()) {
      wanted[request.exactly().device_class_name() + std::string(kDevicesSuffix)] =
          number_of(request.exactly());
    }
    // Any of the alternatives may be the one that is used.
    for (const auto& alternative : request.first_available()) {
      Max(wanted, {{alternative.device_class_name() + std::string(kDevicesSuffix), number_of(alternative)}});
    }
    Add(usage, wanted);
  }
}

// Evaluates a scope like a selector for one label; `values` are the object's values for it.
bool Selects(const QuotaScope& scope, const Names& values) {
  const bool named = std::any_of(scope.values().begin(), scope.values().end(),
                                 [&](const std::string& value) { return values.count(value) > 0; });
  const std::string& op = scope.operator_();
  if (op == "Exists") return !values.empty();
  if (op == "DoesNotExist") return values.empty();
  if (op == "In") return named;
  return op == "NotIn" && !named;
}

template <typename Terms>
bool ReachesOut(const Terms& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const corev1::PodAffinityTerm& term) {
    return term.namespaces_size() > 0 || term.has_namespace_selector();
  });
}
template <typename Affinity>
bool IsCrossNamespace(const Affinity& affinity) {
  if (ReachesOut(affinity.required_during_scheduling_ignored_during_execution())) return true;
  for (const auto& weighted : affinity.preferred_during_scheduling_ignored_during_execution()) {
    const corev1::PodAffinityTerm& term = weighted.pod_affinity_term();
    if (term.namespaces_size() > 0 || term.has_namespace_selector()) return true;
  }
  return false;
}

bool IsPodInScope(const corev1::Pod& pod, const QuotaScope& scope) {
  const std::string& name = scope.scope_name();
  const bool ends = pod.spec().has_active_deadline_seconds() && pod.spec().active_deadline_seconds() >= 0;
  if (name == "Terminating") return ends;
  if (name == "NotTerminating") return !ends;
  if (name == "BestEffort") return QosClass(pod) == kBestEffort;
  if (name == "NotBestEffort") return QosClass(pod) != kBestEffort;
  if (name == "CrossNamespacePodAffinity") {
    return IsCrossNamespace(pod.spec().affinity().pod_affinity()) ||
           IsCrossNamespace(pod.spec().affinity().pod_anti_affinity());
  }
  if (name != "PriorityClass") return false;
  Names classes;
  if (!pod.spec().priority_class_name().empty()) classes.insert(pod.spec().priority_class_name());
  return Selects(scope, classes);
}

bool IsClaimInScope(const corev1::PersistentVolumeClaim& claim, const QuotaScope& scope) {
  if (scope.scope_name() != "VolumeAttributesClass") return false;
  Names classes;
  const auto& status = claim.status();
  for (const std::string* name :
       {&claim.spec().volume_attributes_class_name(), &status.current_volume_attributes_class_name(),
        &status.modify_volume_status().target_volume_attributes_class_name()}) {
    if (!name->empty()) classes.insert(*name);
  }
  return Selects(scope, classes);
}

}  // namespace

std::vector<QuotaScope> QuotaScopes(const corev1::ResourceQuotaSpec& spec) {
  std::vector<QuotaScope> scopes;
  for (const std::string& name : spec.scopes()) {
    QuotaScope scope;
    scope.set_scope_name(name);
    scope.set_operator_("Exists");
    scopes.push_back(std::move(scope));
  }
  for (const QuotaScope& scope : spec.scope_selector().match_expressions()) scopes.push_back(scope);
  return scopes;
}

bool IsInScope(const api::ResourceInfo& info, const api::Message& object, const QuotaScope& scope) {
  if (IsPod(info)) return IsPodInScope(static_cast<const corev1::Pod&>(object), scope);
  if (IsClaim(info)) return IsClaimInScope(static_cast<const corev1::PersistentVolumeClaim&>(object), scope);
  return false;
}

bool IsInScopes(const api::ResourceInfo& info, const api::Message& object,
                const std::vector<QuotaScope>& scopes) {
  return std::all_of(scopes.begin(), scopes.end(),
                     [&](const QuotaScope& scope) { return IsInScope(info, object, scope); });
}

std::string QuotaCountName(const api::ResourceInfo& info) { return "count/" + info.GroupResource(); }

bool QuotaMeasures(const api::ResourceInfo& info) {
  return IsPod(info) || IsService(info) || IsClaim(info) || IsDeviceClaim(info);
}

bool QuotaCounts(const api::ResourceInfo& info, std::string_view resource) {
  if (resource.starts_with("count/")) return resource == QuotaCountName(info);
  if (info.group.empty() && resource == info.resource && Has(kPlainCounts, resource)) return true;
  if (IsPod(info)) {
    return Has(kPodResources, resource) || resource.starts_with("hugepages-") ||
           resource.starts_with("requests.hugepages-") || IsExtendedForQuota(resource);
  }
  if (IsService(info)) return resource == "services.nodeports" || resource == "services.loadbalancers";
  if (IsDeviceClaim(info)) return resource.ends_with(kDevicesSuffix);
  if (!IsClaim(info)) return false;
  return resource == "requests.storage" ||
         resource.ends_with(std::string(kClassSuffix) + "requests.storage") ||
         resource.ends_with(std::string(kClassSuffix) + "persistentvolumeclaims");
}

ResourceList QuotaUsage(const api::ResourceInfo& info, const api::Message& object, WallTime now) {
  ResourceList usage{{QuotaCountName(info), Amount::FromInt(1)}};
  if (IsPod(info)) {
    CountPod(static_cast<const corev1::Pod&>(object), now, usage);
  } else if (IsService(info)) {
    CountService(static_cast<const corev1::Service&>(object), usage);
  } else if (IsClaim(info)) {
    CountClaim(static_cast<const corev1::PersistentVolumeClaim&>(object), usage);
  } else if (IsDeviceClaim(info)) {
    CountDevices(static_cast<const api::resource::v1::ResourceClaim&>(object), usage);
  } else if (info.group.empty() && Has(kPlainCounts, info.resource)) {
    usage[std::string(info.resource)] = Amount::FromInt(1);
  }
  return usage;
}

std::string QuotaProblem(const api::ResourceInfo& info, const api::Message& object,
                         const std::vector<std::string>& resources) {
  if (!IsPod(info)) return "";
  const corev1::PodSpec& spec = static_cast<const corev1::Pod&>(object).spec();
  // What the pod specifies as a whole, its containers need not specify.
  const ResourceList whole =
      ComputeUsage(ToResourceList(spec.resources().requests()), ToResourceList(spec.resources().limits()));
  std::map<std::string, Names> missing;
  for (const std::string& resource : resources) {
    if (!Has(kMustBeSaid, resource) || whole.count(resource)) continue;
    ForEachContainer(spec, [&](const corev1::Container& container) {
      const ResourceList said = ComputeUsage(ToResourceList(container.resources().requests()),
                                             ToResourceList(container.resources().limits()));
      if (!said.count(resource)) missing[resource].insert(container.name());
    });
  }
  std::string text;
  for (const auto& [resource, containers] : missing) {
    text += fmt::format("{}{} for: {}", text.empty() ? "must specify " : "; ", resource,
                        fmt::join(containers, ","));
  }
  return text;
}

}  // namespace keelson::k8s
