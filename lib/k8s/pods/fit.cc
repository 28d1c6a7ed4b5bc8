#include "lib/k8s/pods/fit.h"

#include <fmt/format.h>

#include "lib/k8s/pods/node_affinity.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::k8s {

namespace {

std::string_view Any(std::string_view ip) { return ip.empty() ? std::string_view("0.0.0.0") : ip; }
bool IsAny(std::string_view ip) { return ip == "0.0.0.0"; }

AdmitFailure PredicateFailure(std::string_view name, std::string_view why) {
  return {std::string(name), fmt::format("Predicate {} failed: {}", name, why)};
}

ResourceList UsedBy(const std::vector<const corev1::Pod*>& pods) {
  ResourceList used;
  for (const corev1::Pod* pod : pods) Add(used, PodRequests(*pod, {.use_status = true}));
  used["pods"] = api::Amount::FromInt(static_cast<int64_t>(pods.size()));
  return used;
}

// Drops extended resources that this node does not offer: they may be served elsewhere.
ResourceList KnownTo(const corev1::Node& node, ResourceList requests) {
  std::erase_if(requests, [&](const auto& item) {
    return IsExtendedResource(item.first) && !node.status().allocatable().contains(item.first);
  });
  return requests;
}

bool PortsConflict(const corev1::Pod& pod, const std::vector<const corev1::Pod*>& others) {
  const std::vector<HostPort> wanted = HostPorts(pod.spec());
  if (wanted.empty()) return false;
  for (const corev1::Pod* other : others) {
    for (const HostPort& used : HostPorts(other->spec())) {
      for (const HostPort& port : wanted) {
        if (Conflicts(port, used)) return true;
      }
    }
  }
  return false;
}

}  // namespace

int64_t ScaledValue(std::string_view resource, const api::Amount& amount) {
  return resource == "cpu" ? amount.MilliValue() : amount.Value();
}

std::vector<InsufficientResource> CheckResources(const ResourceList& requests,
                                                 const ResourceList& allocatable, const ResourceList& used) {
  std::vector<InsufficientResource> out;
  const auto value = [](const ResourceList& list, std::string_view name) {
    return ScaledValue(name, AmountOf(list, name));
  };
  if (value(used, "pods") + 1 > value(allocatable, "pods")) {
    out.push_back({"pods", 1, value(used, "pods"), value(allocatable, "pods")});
  }
  for (const auto& [name, amount] : requests) {
    if (amount.IsZero() || name == "pods") continue;
    InsufficientResource entry{name, ScaledValue(name, amount), value(used, name), value(allocatable, name)};
    if (entry.requested > entry.capacity - entry.used) out.push_back(std::move(entry));
  }
  return out;
}

bool Conflicts(const HostPort& a, const HostPort& b) {
  if (a.port != b.port) return false;
  const std::string_view protocol_a = a.protocol.empty() ? std::string_view("TCP") : a.protocol;
  const std::string_view protocol_b = b.protocol.empty() ? std::string_view("TCP") : b.protocol;
  if (protocol_a != protocol_b) return false;
  const std::string_view ip_a = Any(a.ip), ip_b = Any(b.ip);
  return ip_a == ip_b || IsAny(ip_a) || IsAny(ip_b);
}

std::vector<AdmitFailure> CheckAdmission(const corev1::Pod& pod, const corev1::Node& node,
                                         const std::vector<const corev1::Pod*>& others) {
  std::vector<AdmitFailure> failures;
  const ResourceList requests = KnownTo(node, PodRequests(pod));
  const ResourceList allocatable = ToResourceList(node.status().allocatable());
  for (const InsufficientResource& r : CheckResources(requests, allocatable, UsedBy(others))) {
    failures.push_back(
        {"OutOf" + r.resource,
         fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
                     r.resource, r.requested, r.used, r.capacity)});
  }
  if (!MatchesNodeAffinity(pod.spec(), node)) {
    failures.push_back(PredicateFailure("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"));
  }
  if (!pod.spec().node_name().empty() && pod.spec().node_name() != node.metadata().name()) {
    failures.push_back(PredicateFailure("NodeName", "node(s) didn't match the requested node name"));
  }
  if (PortsConflict(pod, others)) {
    failures.push_back(
        PredicateFailure("NodePorts", "node(s) didn't have free ports for the requested pod ports"));
  }
  if (!IsStatic(pod) && FindUntolerated(node.spec().taints(), pod.spec().tolerations(), kNoExecute)) {
    failures.push_back(
        PredicateFailure("TaintToleration", "node(s) had taints that the pod didn't tolerate"));
  }
  return failures;
}

}  // namespace keelson::k8s
