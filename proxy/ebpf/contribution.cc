#include "proxy/ebpf/contribution.h"

#include <utility>

#include "lib/dataplane/ebpf_codec.h"
#include "proxy/ebpf/maglev.h"
#include "proxy/model/traffic.h"

namespace keelson::proxy::ebpf {
namespace {

using dataplane::BytesOf, dataplane::kPresent;

class Collector {
 public:
  Collector(const Options& options, EndpointSlotsByPort& slots)
      : options_(options), old_slots_(std::exchange(slots, {})), slots_(slots) {}

  void Add(const ResolvedPort& port) {
    const ServicePort& service = port.service;
    // All other ports of the address; those of SCTP are not seen here, and so not refused.
    const dataplane::ServiceEntry refuse{.endpoints = 0,
                                         .affinity = 0,
                                         .pods = dataplane::kSocketRefuse,
                                         .node = dataplane::kSocketRefuse,
                                         .zero = {}};
    Put(kServices, ServiceKeyBytes({service.cluster_ip, 0, 0}), BytesOf(refuse));
    if (service.protocol != kTcp && service.protocol != kUdp) return;
    const std::string name = service.name + "/" + std::to_string(service.protocol);
    const EndpointSlots& before = old_slots_[name];
    EndpointSlots& now = slots_[name];
    now = {nftables::AssignSlots(before.cluster, port.cluster),
           nftables::AssignSlots(before.local, port.local)};
    At(port, now, Frontend::kClusterIp, &service.cluster_ip);
    for (const IpAddress& ip : service.external_ips) At(port, now, Frontend::kExternalIp, &ip);
    for (const IpAddress& ip : service.load_balancer_ips) At(port, now, Frontend::kLoadBalancerIp, &ip);
    if (service.node_port != 0) At(port, now, Frontend::kNodePort, nullptr);
  }

  std::vector<MapEntry> Take() { return std::move(out_); }

 private:
  using Backends = std::vector<Backend>;

  void Put(MapId map, std::string key, std::string value) {
    out_.push_back({map, std::move(key), std::move(value)});
  }

  uint8_t VerdictOf(const Decision& decision, Origin origin) const {
    switch (decision.verdict) {
      case TrafficVerdict::kRefused:
        return dataplane::kSocketRefuse;
      case TrafficVerdict::kDropped:
        return dataplane::kSocketDrop;
      case TrafficVerdict::kServed:
        break;
    }
    // The node has an address of its own on the way to every endpoint: it needs no masquerading.
    return decision.masquerade && origin == Origin::kPod ? dataplane::kSocketPass : dataplane::kSocketServe;
  }

  void At(const ResolvedPort& port, const EndpointSlots& slots, Frontend frontend, const IpAddress* ip) {
    const ServicePort& service = port.service;
    const std::string key =
        ServiceKeyBytes({ip ? std::optional(*ip) : std::nullopt, service.protocol,
                         frontend == Frontend::kNodePort ? service.node_port : service.port});
    const Backends* at_sockets = AtSockets(port, slots, frontend, key);
    const Backends* from_outside =
        frontend == Frontend::kClusterIp ? nullptr : FromOutside(port, slots, frontend, key);
    const bool stay = service.affinity.count() != 0 || service.protocol == kUdp;
    if (at_sockets) PutEndpoints(key, *at_sockets, 0, stay || from_outside == at_sockets);
    if (from_outside && from_outside != at_sockets) {
      PutEndpoints(key, *from_outside, FirstSlot(service), true);
    }
  }

  static uint32_t FirstSlot(const ServicePort& service) {
    return service.external_local ? KP_FIRST_LOCAL_SLOT : 0;
  }

  void PutEndpoints(const std::string& key, const Backends& list, uint32_t first, bool members) {
    for (uint32_t i = 0; i < list.size(); ++i) {
      const std::string endpoint = EndpointBytes({list[i].ip, list[i].port});
      const uint32_t slot = first + i;
      Put(kEndpoints, key + BytesOf(slot), endpoint);
      if (members) Put(kMembers, key + endpoint, BytesOf(kPresent));
    }
  }

  // Which endpoints clients on this node may get there; null: none.
  const Backends* AtSockets(const ResolvedPort& port, const EndpointSlots& slots, Frontend frontend,
                            const std::string& key) {
    const ServicePort& service = port.service;
    // Which address the client will send from is not known yet.
    if (frontend == Frontend::kLoadBalancerIp && !service.source_ranges.empty()) return nullptr;
    const TrafficOptions traffic{.masquerade_all = options_.masquerade_all,
                                 .detects_pods = options_.detects_pods};
    const Decision pods = Decide(port, frontend, Origin::kPod, {}, traffic);
    const Decision node = Decide(port, frontend, Origin::kNode, {}, traffic);
    dataplane::ServiceEntry value{};
    value.affinity = static_cast<__u32>(service.affinity.count());
    value.pods = VerdictOf(pods, Origin::kPod);
    value.node = VerdictOf(node, Origin::kNode);
    // Pods that packets cannot tell from strangers are left to what packets meet.
    if (!options_.detects_pods && frontend != Frontend::kClusterIp &&
        pods.verdict != TrafficVerdict::kRefused) {
      value.pods = dataplane::kSocketPass;
    }
    if (value.pods == dataplane::kSocketPass && value.node == dataplane::kSocketPass) return nullptr;
    const Backends* list = nullptr;
    if (node.verdict == TrafficVerdict::kServed) {
      list = node.endpoints == &port.local ? &slots.local : &slots.cluster;
      value.endpoints = static_cast<__u32>(list->size());
    }
    Put(kServices, key, BytesOf(value));
    return list;
  }

  // Which endpoints who comes from outside may get there; null: the rules say what becomes of it.
  const Backends* FromOutside(const ResolvedPort& port, const EndpointSlots& slots, Frontend frontend,
                              const std::string& key) {
    const ServicePort& service = port.service;
    const bool limited = frontend == Frontend::kLoadBalancerIp && !service.source_ranges.empty();
    // Source ranges are looked at for each packet.
    const Decision decision = Decide(port, limited ? Frontend::kExternalIp : frontend, Origin::kExternal, {});
    if (decision.verdict != TrafficVerdict::kServed) return nullptr;
    const Backends& list = decision.endpoints == &port.local ? slots.local : slots.cluster;
    dataplane::ExternalServiceEntry value{};
    value.endpoints = static_cast<__u32>(list.size());
    value.first_slot = FirstSlot(service);
    value.affinity = static_cast<__u32>(service.affinity.count());
    value.masquerade = decision.masquerade;
    value.limited = limited;
    if (list.size() > 1) value.maglev_chunks = PutMaglevTable(key, list);
    for (const IpPrefix& range : service.source_ranges) {
      if (limited) PutRange(key, range);
    }
    Put(kExternalServices, key, BytesOf(value));
    return &list;
  }

  // How many chunks.
  uint32_t PutMaglevTable(const std::string& key, const Backends& list) {
    const std::vector<uint16_t> table = MaglevTable(list);
    const auto chunks = static_cast<uint32_t>(table.size() / KP_MAGLEV_CHUNK);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const auto* begin = reinterpret_cast<const char*>(&table[chunk * KP_MAGLEV_CHUNK]);
      Put(kMaglev, key + BytesOf(chunk), std::string(begin, sizeof(dataplane::MaglevChunk)));
    }
    return chunks;
  }

  void PutRange(const std::string& key, const IpPrefix& range) {
    const auto service = *dataplane::FromBytes<dataplane::ServiceKey>(key);
    Put(kSourceRanges, BytesOf(dataplane::EncodeSourceRange(service, range)), BytesOf(kPresent));
  }

  const Options& options_;
  EndpointSlotsByPort old_slots_;
  EndpointSlotsByPort& slots_;
  std::vector<MapEntry> out_;
};

}  // namespace

const char* MapName(MapId map) {
  // As in KP_SERVICE_MAPS.
  constexpr const char* kNames[] = {"endpoints", "members",      "maglev",   "source_ranges",
                                    "pods",      "nodeport_ips", "services", "outside"};
  return kNames[map];
}

std::string ServiceKeyBytes(const dataplane::ServiceAddress& service) {
  return BytesOf(dataplane::Encode(service));
}

std::string EndpointBytes(const dataplane::EndpointAddress& endpoint) {
  return BytesOf(dataplane::Encode(endpoint));
}

std::vector<MapEntry> NodePortEntries(const std::vector<IpAddress>& ips, bool v4) {
  std::vector<MapEntry> out;
  for (const IpAddress& ip : ips) {
    if (ip.is_v4() != v4) continue;
    dataplane::AddressKey key{};
    dataplane::EncodeIp(ip, key.ip);
    out.push_back({kNodePortIps, BytesOf(key), BytesOf(kPresent)});
  }
  return out;
}

std::vector<MapEntry> PodEntries(const std::vector<IpPrefix>& cidrs) {
  std::vector<MapEntry> out;
  for (const IpPrefix& cidr : cidrs) {
    out.push_back({kPodCidrs, BytesOf(dataplane::EncodePodCidr(cidr)), BytesOf(kPresent)});
  }
  return out;
}

std::vector<MapEntry> ContributionOf(const std::vector<ResolvedPort>& ports, const Options& options,
                                     EndpointSlotsByPort& slots) {
  Collector collector(options, slots);
  for (const ResolvedPort& port : ports) collector.Add(port);
  return collector.Take();
}

}  // namespace keelson::proxy::ebpf
