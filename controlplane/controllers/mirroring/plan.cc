#include "controlplane/controllers/mirroring/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/endpoints/trigger_time.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/k8s/text/names.h"

namespace keelson::controllers {
namespace {

using discoveryv1::Endpoint;
using discoveryv1::EndpointPort;
using discoveryv1::EndpointSlice;
using google::protobuf::util::MessageDifferencer;

constexpr char kSkipMirror[] = "endpointslice.kubernetes.io/skip-mirror";
constexpr char kLeader[] = "control-plane.alpha.kubernetes.io/leader";
constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";

using Ports = std::vector<EndpointPort>;

template <typename Range>
std::string KeyOf(const std::string& family, const Range& ports) {
  std::vector<std::string> parts;
  for (const auto& port : ports) parts.push_back(api::EncodeRaw(port));
  std::sort(parts.begin(), parts.end());
  std::string key = family;
  for (const std::string& part : parts) key += "/" + std::to_string(part.size()) + ":" + part;
  return key;
}

Ports PortsOf(const corev1::EndpointSubset& subset) {
  Ports ports;
  for (const corev1::EndpointPort& from : subset.ports()) {
    EndpointPort& port = ports.emplace_back();
    port.set_name(from.name());
    port.set_port(from.port());
    port.set_protocol(from.protocol().empty() ? "TCP" : from.protocol());
    if (from.has_app_protocol()) port.set_app_protocol(from.app_protocol());
  }
  return ports;
}

Endpoint EndpointOf(const corev1::EndpointAddress& address, bool ready) {
  Endpoint endpoint;
  endpoint.add_addresses(address.ip());
  endpoint.mutable_conditions()->set_ready(ready);
  if (!address.node_name().empty()) endpoint.set_node_name(address.node_name());
  if (!address.hostname().empty()) endpoint.set_hostname(address.hostname());
  if (address.has_target_ref()) *endpoint.mutable_target_ref() = address.target_ref();
  return endpoint;
}

// The wanted slices with their endpoints.
class Wanted {
 public:
  struct Group {
    std::string family;
    Ports ports;
    std::vector<Endpoint> endpoints;
    std::set<std::string> seen;
  };

  void Add(const corev1::EndpointSubset& subset, int max_mirrored, MirrorPlan& plan) {
    const Ports ports = PortsOf(subset);
    int added = 0;
    auto add = [&](const auto& addresses, bool ready) {
      for (const corev1::EndpointAddress& address : addresses) {
        if (added >= max_mirrored) return;
        const char* family = k8s::IsIpv4(address.ip())   ? "IPv4"
                             : k8s::IsIpv6(address.ip()) ? "IPv6"
                                                         : nullptr;
        if (!family) {
          ++plan.invalid;
          continue;
        }
        ++added;
        Group& group = groups_[KeyOf(family, ports)];
        group.family = family;
        group.ports = ports;
        if (group.seen.insert(address.ip() + "/" + address.target_ref().uid()).second) {
          group.endpoints.push_back(EndpointOf(address, ready));
        }
      }
    };
    add(subset.addresses(), true);
    add(subset.not_ready_addresses(), false);
    plan.skipped += subset.addresses_size() + subset.not_ready_addresses_size() - added;
  }
  std::map<std::string, Group>& groups() { return groups_; }

 private:
  std::map<std::string, Group> groups_;
};

// Sets the metadata of a mirrored slice; keeps its name.
void SetMetadata(const corev1::Endpoints& endpoints, EndpointSlice& slice) {
  metav1::ObjectMeta& meta = *slice.mutable_metadata();
  *meta.mutable_labels() = endpoints.metadata().labels();
  (*meta.mutable_labels())[kServiceName] = endpoints.metadata().name();
  (*meta.mutable_labels())[kSliceManagedBy] = kMirroringController;
  *meta.mutable_annotations() = endpoints.metadata().annotations();
  meta.mutable_annotations()->erase(kTriggerTime);
  meta.mutable_annotations()->erase(kLastApplied);
}

bool SameEndpoints(const EndpointSlice& slice, const Wanted::Group& group) {
  auto keys = [](const auto& endpoints) {
    std::vector<std::string> out;
    for (const Endpoint& endpoint : endpoints) out.push_back(api::EncodeRaw(endpoint));
    std::sort(out.begin(), out.end());
    return out;
  };
  return slice.endpoints_size() == static_cast<int>(group.endpoints.size()) &&
         keys(slice.endpoints()) == keys(group.endpoints);
}

void Fill(const corev1::Endpoints& endpoints, const Wanted::Group& group, EndpointSlice& slice) {
  SetMetadata(endpoints, slice);
  slice.set_address_type(group.family);
  slice.clear_ports();
  for (const EndpointPort& port : group.ports) *slice.add_ports() = port;
  slice.clear_endpoints();
  for (const Endpoint& endpoint : group.endpoints) *slice.add_endpoints() = endpoint;
}

}  // namespace

bool ShouldMirror(const corev1::Endpoints& endpoints) {
  auto skip = endpoints.metadata().labels().find(kSkipMirror);
  if (skip != endpoints.metadata().labels().end() && skip->second == "true") return false;
  return !endpoints.metadata().annotations().contains(kLeader);
}

MirrorPlan PlanMirror(const corev1::Endpoints& endpoints, const std::vector<SlicePointer>& existing,
                      int max_mirrored) {
  MirrorPlan plan;
  Wanted wanted;
  for (const corev1::EndpointSubset& subset : endpoints.subsets()) wanted.Add(subset, max_mirrored, plan);
  for (const SlicePointer& slice : existing) {
    auto found = wanted.groups().find(KeyOf(slice->address_type(), slice->ports()));
    if (found == wanted.groups().end()) {
      plan.remove.push_back(slice);
      continue;
    }
    EndpointSlice changed = *slice;
    SetMetadata(endpoints, changed);
    if (!SameEndpoints(*slice, found->second) ||
        !MessageDifferencer::Equals(changed.metadata(), slice->metadata())) {
      Fill(endpoints, found->second, changed);
      plan.update.push_back(std::move(changed));
    }
    wanted.groups().erase(found);  // one slice is enough; duplicates are deleted
  }
  for (const auto& entry : wanted.groups()) {
    const auto& group = entry.second;
    // Reuse a slice that would be deleted for one that would be created, if the family (immutable) matches.
    auto reused = std::find_if(plan.remove.begin(), plan.remove.end(), [&](const SlicePointer& slice) {
      const metav1::OwnerReference* owner = api::ControllerOf(slice->metadata());
      return slice->address_type() == group.family && owner && owner->uid() == endpoints.metadata().uid();
    });
    EndpointSlice slice;
    if (reused != plan.remove.end()) {
      slice = **reused;
      plan.remove.erase(reused);
      Fill(endpoints, group, slice);
      plan.update.push_back(std::move(slice));
      continue;
    }
    slice.mutable_metadata()->set_generate_name(endpoints.metadata().name() + "-");
    slice.mutable_metadata()->set_namespace_(endpoints.metadata().namespace_());
    *slice.mutable_metadata()->add_owner_references() = api::ControllerRef(endpoints);
    Fill(endpoints, group, slice);
    plan.create.push_back(std::move(slice));
  }
  if (endpoints.metadata().has_deletion_timestamp()) plan.create.clear();
  return plan;
}

}  // namespace keelson::controllers
