#include "controlplane/controllers/endpoints/slice_plan.h"

#include <algorithm>
#include <map>

#include <google/protobuf/util/message_differencer.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using discoveryv1::Endpoint;
using discoveryv1::EndpointSlice;
using google::protobuf::util::MessageDifferencer;

template <typename Range>
std::string PortsKey(const Range& ports) {
  std::vector<std::string> parts;
  for (const auto& port : ports) parts.push_back(api::EncodeRaw(port));
  std::sort(parts.begin(), parts.end());
  std::string key;
  for (const std::string& part : parts) key += std::to_string(part.size()) + ":" + part;
  return key;
}

// The identity of an endpoint, independent of its state.
std::string IdentityOf(const Endpoint& endpoint) {
  std::string key = endpoint.target_ref().uid();
  for (const std::string& address : endpoint.addresses()) key += "|" + address;
  return key;
}

Endpoint MakeEndpoint(const corev1::Service& service, const EndpointPod& pod, const std::string& ip,
                      const ZoneOfNode& zone_of) {
  Endpoint endpoint;
  endpoint.add_addresses(ip);
  auto& conditions = *endpoint.mutable_conditions();
  conditions.set_ready(service.spec().publish_not_ready_addresses() || (pod.ready && !pod.terminating));
  conditions.set_serving(pod.ready);
  conditions.set_terminating(pod.terminating);
  if (!pod.hostname.empty() && pod.subdomain == service.metadata().name()) {
    endpoint.set_hostname(pod.hostname);
  }
  auto& target = *endpoint.mutable_target_ref();
  target.set_kind("Pod");
  target.set_namespace_(pod.ns);
  target.set_name(pod.name);
  target.set_uid(pod.uid);
  if (!pod.node.empty()) {
    endpoint.set_node_name(pod.node);
    if (std::string zone = zone_of(pod.node); !zone.empty()) endpoint.set_zone(zone);
  }
  return endpoint;
}

std::vector<discoveryv1::EndpointPort> PortsOf(const corev1::Service& service, const EndpointPod& pod) {
  std::vector<discoveryv1::EndpointPort> ports;
  for (const corev1::ServicePort& port : service.spec().ports()) {
    const int32_t number = TargetPort(pod, port);
    if (number == 0) continue;
    discoveryv1::EndpointPort& out = ports.emplace_back();
    out.set_name(port.name());
    out.set_protocol(port.protocol().empty() ? "TCP" : port.protocol());
    out.set_port(number);
    if (port.has_app_protocol()) out.set_app_protocol(port.app_protocol());
  }
  return ports;
}

// Sets the metadata of a Service's slice; keeps metadata of other writers.
void SetMetadata(const corev1::Service& service, EndpointSlice& slice) {
  metav1::ObjectMeta& meta = *slice.mutable_metadata();
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : service.metadata().labels()) {
    if (key != kServiceName && key != kSliceManagedBy && key != kHeadless) labels[key] = value;
  }
  labels[kServiceName] = service.metadata().name();
  labels[kSliceManagedBy] = kSliceController;
  if (IsHeadless(service)) labels[kHeadless] = "";
  meta.mutable_labels()->clear();
  for (auto& [key, value] : labels) (*meta.mutable_labels())[key] = value;
}

EndpointSlice NewSlice(const corev1::Service& service, const std::string& family,
                       const std::vector<discoveryv1::EndpointPort>& ports) {
  EndpointSlice slice;
  slice.mutable_metadata()->set_generate_name(service.metadata().name() + "-");
  slice.mutable_metadata()->set_namespace_(service.metadata().namespace_());
  *slice.mutable_metadata()->add_owner_references() = api::ControllerRef(service);
  SetMetadata(service, slice);
  slice.set_address_type(family);
  for (const auto& port : ports) *slice.add_ports() = port;
  return slice;
}

// An existing slice and its wanted content.
struct Draft {
  SlicePointer before;
  EndpointSlice after;
  bool changed = false;
};

// Keeps the endpoints that are still wanted, updated, and removes them from `wanted`. Returns how many
// endpoints it dropped.
size_t KeepWanted(std::map<std::string, Endpoint>& wanted, std::vector<Draft>& drafts) {
  size_t removed = 0;
  for (Draft& draft : drafts) {
    draft.after.clear_endpoints();
    for (const Endpoint& endpoint : draft.before->endpoints()) {
      auto it = wanted.find(IdentityOf(endpoint));
      if (it == wanted.end()) {
        draft.changed = true;
        ++removed;
        continue;
      }
      draft.changed = draft.changed || !MessageDifferencer::Equals(endpoint, it->second);
      *draft.after.add_endpoints() = std::move(it->second);
      wanted.erase(it);
    }
  }
  return removed;
}

// Adds at most `most` endpoints, up to `full` in the slice.
void Fill(std::map<std::string, Endpoint>& wanted, Draft& draft, size_t full, size_t most) {
  for (size_t i = 0; i < most && !wanted.empty(); ++i) {
    if (static_cast<size_t>(draft.after.endpoints_size()) >= full) return;
    *draft.after.add_endpoints() = std::move(wanted.begin()->second);
    wanted.erase(wanted.begin());
    draft.changed = true;
  }
}

void PlaceRest(std::map<std::string, Endpoint>& wanted, std::vector<Draft>& drafts, size_t full) {
  std::vector<Draft*> order;
  for (Draft& draft : drafts) order.push_back(&draft);
  std::stable_sort(order.begin(), order.end(), [](const Draft* a, const Draft* b) {
    return a->after.endpoints_size() > b->after.endpoints_size();
  });
  for (Draft* draft : order) {
    if (draft->changed && draft->after.endpoints_size() > 0) Fill(wanted, *draft, full, full);
  }
  // Full slices' worth goes into new slices; the remainder into the fullest unchanged slice with enough room.
  const size_t remainder = wanted.size() % full;
  if (wanted.empty() || remainder == 0) return;
  for (Draft* draft : order) {
    if (draft->changed && draft->after.endpoints_size() > 0) continue;
    if (static_cast<size_t>(draft->after.endpoints_size()) + remainder > full) continue;
    return Fill(wanted, *draft, full, remainder);
  }
}

void PlanGroup(const corev1::Service& service, const std::string& family, EndpointGroup group,
               const std::vector<SlicePointer>& existing, size_t full, SlicePlan& plan) {
  std::map<std::string, Endpoint> wanted;
  for (Endpoint& endpoint : group.endpoints) {
    std::string identity = IdentityOf(endpoint);
    wanted.emplace(std::move(identity), std::move(endpoint));
  }
  std::vector<Draft> drafts;
  for (const SlicePointer& slice : existing) {
    Draft& draft = drafts.emplace_back();
    draft.before = slice;
    draft.after = *slice;
    SetMetadata(service, draft.after);
    draft.changed = !MessageDifferencer::Equals(draft.after.metadata(), slice->metadata());
  }
  plan.endpoints += wanted.size();
  plan.ideal_slices += (wanted.size() + full - 1) / full;
  plan.removed += KeepWanted(wanted, drafts);
  plan.added += wanted.size();
  PlaceRest(wanted, drafts, full);
  for (Draft& draft : drafts) {
    if (draft.after.endpoints_size() == 0) {
      plan.remove.push_back(draft.before);
    } else if (draft.changed) {
      plan.update.push_back(std::move(draft.after));
    }
  }
  while (!wanted.empty()) {
    Draft fresh;
    fresh.after = NewSlice(service, family, group.ports);
    Fill(wanted, fresh, full, full);
    plan.create.push_back(std::move(fresh.after));
  }
}

void AddHints(const corev1::Service& service, const std::string& family, const ZoneShares& shares,
              std::vector<EndpointGroup>& groups, SlicePlan& plan) {
  std::vector<Endpoint*> all;
  for (EndpointGroup& group : groups) {
    for (Endpoint& endpoint : group.endpoints) all.push_back(&endpoint);
  }
  const HintMode mode = HintModeOf(service);
  std::string problem = SetHints(mode, shares, all);
  if (mode == HintMode::kTopology) plan.hint_problems[family] = std::move(problem);
}

void RemoveAll(const std::vector<SlicePointer>& slices, SlicePlan& plan) {
  for (const SlicePointer& slice : slices) plan.removed += static_cast<size_t>(slice->endpoints_size());
  plan.remove.insert(plan.remove.end(), slices.begin(), slices.end());
}

// A Service without endpoints has one empty slice, so that clients can tell it from a Service that was not
// processed.
void KeepPlaceholder(const corev1::Service& service, const std::string& family,
                     const std::vector<SlicePointer>& existing, SlicePlan& plan) {
  for (const SlicePointer& slice : existing) {
    if (slice->endpoints_size() > 0 || slice->ports_size() > 0) continue;
    EndpointSlice after = *slice;
    SetMetadata(service, after);
    if (!MessageDifferencer::Equals(after, *slice)) plan.update.push_back(std::move(after));
    for (const SlicePointer& other : existing) {
      if (other != slice) RemoveAll({other}, plan);
    }
    return;
  }
  plan.create.push_back(NewSlice(service, family, {}));
  RemoveAll(existing, plan);
}

}  // namespace

bool IsIpv6Address(std::string_view ip) { return ip.find(':') != std::string_view::npos; }

bool IsHeadless(const corev1::Service& service) {
  return service.spec().cluster_ip() == "None" || service.spec().cluster_ip().empty();
}

std::vector<std::string> FamiliesOf(const corev1::Service& service) {
  const auto& families = service.spec().ip_families();
  if (!families.empty()) return {families.begin(), families.end()};
  return {IsIpv6Address(service.spec().cluster_ip()) ? "IPv6" : "IPv4"};
}

std::vector<EndpointGroup> DesiredEndpoints(const corev1::Service& service,
                                            const std::vector<EndpointPodPointer>& pods,
                                            const std::string& family, const ZoneOfNode& zone_of) {
  std::map<std::string, EndpointGroup> groups;
  for (const EndpointPodPointer& pod : pods) {
    auto ip = std::find_if(pod->ips.begin(), pod->ips.end(), [&](const std::string& candidate) {
      return IsIpv6Address(candidate) == (family == "IPv6");
    });
    if (ip == pod->ips.end()) continue;
    std::vector<discoveryv1::EndpointPort> ports = PortsOf(service, *pod);
    EndpointGroup& group = groups[PortsKey(ports)];
    group.ports = std::move(ports);
    group.endpoints.push_back(MakeEndpoint(service, *pod, *ip, zone_of));
  }
  std::vector<EndpointGroup> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

SlicePlan PlanSlices(const corev1::Service& service, const std::vector<EndpointPodPointer>& pods,
                     const std::vector<SlicePointer>& existing, const ZoneOfNode& zone_of,
                     const ZoneShares& shares, size_t max_endpoints) {
  SlicePlan plan;
  std::vector<SlicePointer> others = existing;  // of families that the Service no longer has
  for (const std::string& family : FamiliesOf(service)) {
    std::vector<SlicePointer> own;
    std::erase_if(others, [&](const SlicePointer& slice) {
      if (slice->address_type() != family) return false;
      own.push_back(slice);
      return true;
    });
    std::vector<EndpointGroup> groups = DesiredEndpoints(service, pods, family, zone_of);
    AddHints(service, family, shares, groups, plan);
    if (groups.empty()) {
      KeepPlaceholder(service, family, own, plan);
      continue;
    }
    for (EndpointGroup& group : groups) {
      const std::string key = PortsKey(group.ports);
      std::vector<SlicePointer> matching;
      std::erase_if(own, [&](const SlicePointer& slice) {
        if (PortsKey(slice->ports()) != key) return false;
        matching.push_back(slice);
        return true;
      });
      PlanGroup(service, family, std::move(group), matching, max_endpoints, plan);
    }
    RemoveAll(own, plan);
  }
  RemoveAll(others, plan);
  plan.ideal_slices = std::max<size_t>(plan.ideal_slices, 1);  // an empty one, for no endpoints
  return plan;
}

}  // namespace keelson::controllers
