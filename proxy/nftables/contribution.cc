#include "proxy/nftables/contribution.h"

#include <utility>

#include "lib/dataplane/nftables_elements.h"
#include "proxy/model/traffic.h"
#include "proxy/nftables/endpoint_slots.h"

namespace keelson::proxy::nftables {
namespace {

class Collector {
 public:
  Collector(const std::vector<IpAddress>& node_ips, bool ipvs, EndpointSlotsByPort& slots)
      : node_ips_(node_ips), ipvs_(ipvs), old_slots_(std::move(slots)), slots_(slots) {
    slots_.clear();
  }

  void Add(const ResolvedPort& port) {
    const ServicePort& service = port.service;
    const EndpointSlots& slots = Place(port);
    if (!ipvs_) Put(kClusterIps, nft::Key().Ip(service.cluster_ip).bytes());
    ClusterIp(port, slots);
    for (const auto* list : {&service.external_ips, &service.load_balancer_ips}) {
      for (const IpAddress& ip : *list) External(port, slots, &ip);
    }
    if (service.node_port != 0) External(port, slots, nullptr);
    for (const auto* list : {&slots.cluster, &slots.local}) {
      for (const Backend& backend : *list) {
        if (!backend.local) continue;
        Put(kHairpin, nft::Key().Ip(backend.ip).Ip(backend.ip).bytes());
        Put(kLocalEndpoints, nft::Key().Ip(backend.ip).bytes());
      }
    }
    if (!service.source_ranges.empty()) SourceRanges(service);
  }

  Contribution Take() { return std::move(out_); }

 private:
  static std::string VipKey(const ServicePort& s, const IpAddress& ip) {
    return dataplane::ServiceElement({ip, s.protocol, s.port});
  }
  static std::string NodePortKey(const ServicePort& s) {
    return dataplane::ServiceElement({std::nullopt, s.protocol, s.node_port});
  }
  void Put(SetId set, std::string key, Datum datum = "") {
    out_.items.push_back({set, std::move(key), std::move(datum)});
  }

  const EndpointSlots& Place(const ResolvedPort& port) {
    const std::string name = port.service.name + "/" + std::to_string(port.service.protocol);
    const EndpointSlots& before = old_slots_[name];
    auto keep = port.service.affinity.count() > 0 ? AssignAffinitySlots : AssignSlots;
    EndpointSlots& slots = slots_[name];
    slots = {keep(before.cluster, port.cluster), keep(before.local, port.local)};
    return slots;
  }

  void ClusterIp(const ResolvedPort& port, const EndpointSlots& slots) {
    const ServicePort& s = port.service;
    const auto& list = s.internal_local ? slots.local : slots.cluster;
    std::string key = VipKey(s, s.cluster_ip);
    if (TrafficVerdict verdict = InternalVerdict(port); verdict != TrafficVerdict::kServed) {
      Put(verdict == TrafficVerdict::kRefused ? kRejectServices : kDropServices, key);
      return;
    }
    PickSpec spec{.kind = PickSpec::Kind::kCluster,
                  .cluster = static_cast<uint32_t>(list.size()),
                  .affinity = s.affinity};
    if (ipvs_) return Mark({.kind = spec.kind}, key);
    Install(spec, key, list, {});
  }

  // `ip` null: the NodePort.
  void External(const ResolvedPort& port, const EndpointSlots& slots, const IpAddress* ip) {
    const ServicePort& s = port.service;
    std::string key = ip ? VipKey(s, *ip) : NodePortKey(s);
    const std::vector<Backend> none;
    const auto& local = s.external_local ? slots.local : none;
    TrafficVerdict verdict = ExternalVerdict(port);
    if (verdict == TrafficVerdict::kRefused) {
      Put(ip ? kRejectServices : kRejectNodePorts, key);
      return;
    }
    PickSpec spec{.kind = s.external_local ? PickSpec::Kind::kExternalLocal : PickSpec::Kind::kExternal,
                  .node_port = ip == nullptr,
                  .cluster = static_cast<uint32_t>(slots.cluster.size()),
                  .local = static_cast<uint32_t>(local.size()),
                  .affinity = s.affinity};
    // What nobody picked an endpoint for came from outside.
    if (verdict == TrafficVerdict::kDropped) Put(ip ? kDropServices : kDropNodePorts, key);
    if (ipvs_ && !s.external_local) return Mark({.kind = spec.kind, .node_port = spec.node_port}, key);
    if (ipvs_) spec.local = 0;
    Install(spec, key, slots.cluster, ipvs_ ? none : local);
  }

  // IPVS picks; the chain only says what is to be masqueraded.
  void Mark(const PickSpec& spec, const std::string& key) {
    out_.picks.push_back(spec);
    Put(spec.node_port ? kNodePorts : kServices, key, spec.ChainName());
  }

  void Install(const PickSpec& spec, const std::string& key, const std::vector<Backend>& cluster,
               const std::vector<Backend>& local) {
    out_.picks.push_back(spec);
    Put(spec.node_port ? kNodePorts : kServices, key, spec.ChainName());
    SetId endpoints = spec.node_port ? kNodePortEndpoints : kEndpoints;
    auto put = [&](const std::vector<Backend>& list, uint32_t first) {
      for (size_t i = 0; i < list.size(); ++i) {
        if (IsEmptySlot(list[i])) continue;
        Put(endpoints, dataplane::EndpointElement(key, first + static_cast<uint32_t>(i)),
            dataplane::EndpointData({list[i].ip, list[i].port}));
      }
    };
    put(cluster, 0);
    put(local, kFirstLocalSlot);
  }

  void SourceRanges(const ServicePort& s) {
    std::vector<IpPrefix> admitted = AdmittedSources(s, node_ips_);
    for (const IpAddress& ip : s.load_balancer_ips) {
      std::string key = VipKey(s, ip);
      Put(kLimited, key);
      for (const IpPrefix& range : admitted) {
        Put(kSourceRanges, key + std::string(range.Network().bytes()),
            key + std::string(range.Last().bytes()));
      }
    }
  }

  const std::vector<IpAddress>& node_ips_;
  const bool ipvs_;
  EndpointSlotsByPort old_slots_;
  EndpointSlotsByPort& slots_;
  Contribution out_;
};

}  // namespace

Contribution ContributionOf(const std::vector<ResolvedPort>& ports, const std::vector<IpAddress>& node_ips,
                            bool ipvs, EndpointSlotsByPort& slots) {
  Collector collector(node_ips, ipvs, slots);
  for (const ResolvedPort& port : ports) collector.Add(port);
  return collector.Take();
}

}  // namespace keelson::proxy::nftables
