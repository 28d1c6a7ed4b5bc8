#include "proxy/ebpf/contribution.h"

#include <arpa/inet.h>

#include <cstring>
#include <utility>

#include "proxy/ebpf/bpf/maps.h"
#include "proxy/ebpf/maglev.h"
#include "proxy/model/traffic.h"
#include "proxy/nftables/slots.h"

namespace keelson::proxy::ebpf {
namespace {

template <typename T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

Vip VipOf(const IpAddress* ip, uint8_t protocol, uint16_t port) {
  Vip out{.port = htons(port), .protocol = protocol};
  if (ip) {
    FillAddress(*ip, out.ip);
  } else {
    std::memset(out.ip, 0xff, sizeof out.ip);
  }
  return out;
}

Endpoint EndpointOf(const IpAddress& ip, uint16_t port) {
  Endpoint out{.port = htons(port)};
  FillAddress(ip, out.ip);
  return out;
}

// Of mapped addresses 96 bits are what says so.
PodRange RangeOf(const IpPrefix& range) {
  PodRange out{.bits = static_cast<__u32>(range.length() + (range.is_v4() ? 96 : 0))};
  FillAddress(range.Network(), out.ip);
  return out;
}

class Collector {
 public:
  Collector(const Options& options, SlotsByPort& slots)
      : options_(options), old_slots_(std::exchange(slots, {})), slots_(slots) {}

  void Add(const ResolvedPort& port) {
    const ServicePort& service = port.service;
    // All other ports of the address; those of SCTP are not seen here, and so not refused.
    Put(kServices, VipKey(&service.cluster_ip, 0, 0), BytesOf(Service{.pods = kRefuse, .node = kRefuse}));
    if (service.protocol != kTcp && service.protocol != kUdp) return;
    const std::string name = service.name + "/" + std::to_string(service.protocol);
    const Slots& before = old_slots_[name];
    Slots& now = slots_[name];
    now = {nftables::KeepSlots(before.cluster, port.cluster), nftables::KeepSlots(before.local, port.local)};
    At(port, now, Entry::kClusterIp, &service.cluster_ip);
    for (const IpAddress& ip : service.external_ips) At(port, now, Entry::kExternalIp, &ip);
    for (const IpAddress& ip : service.load_balancer_ips) At(port, now, Entry::kLoadBalancerIp, &ip);
    if (service.node_port != 0) At(port, now, Entry::kNodePort, nullptr);
  }

  std::vector<ebpf::Entry> Take() { return std::move(out_); }

 private:
  using Entry = proxy::Entry;
  using Backends = std::vector<Backend>;

  void Put(MapId map, std::string key, std::string value) {
    out_.push_back({map, std::move(key), std::move(value)});
  }

  uint8_t AnswerOf(const Decision& decision, Origin origin) const {
    switch (decision.fate) {
      case Fate::kRefused:
        return kRefuse;
      case Fate::kDropped:
        return kDrop;
      case Fate::kServed:
        break;
    }
    // The node has an address of its own on the way to every endpoint: it needs no masquerading.
    return decision.masquerade && origin == Origin::kPod ? kPass : kServe;
  }

  void At(const ResolvedPort& port, const Slots& slots, Entry entry, const IpAddress* ip) {
    const ServicePort& service = port.service;
    const std::string key =
        VipKey(ip, service.protocol, entry == Entry::kNodePort ? service.node_port : service.port);
    const Backends* at_sockets = AtSockets(port, slots, entry, key);
    const Backends* from_outside =
        entry == Entry::kClusterIp ? nullptr : FromOutside(port, slots, entry, key);
    const bool stay = service.affinity.count() != 0 || service.protocol == kUdp;
    if (at_sockets) PutEndpoints(key, *at_sockets, 0, stay || from_outside == at_sockets);
    if (from_outside && from_outside != at_sockets) {
      PutEndpoints(key, *from_outside, FirstSlot(service), true);
    }
  }

  static uint32_t FirstSlot(const ServicePort& service) {
    return service.external_local ? KP_LOCAL_SLOTS : 0;
  }

  void PutEndpoints(const std::string& key, const Backends& list, uint32_t first, bool members) {
    for (uint32_t i = 0; i < list.size(); ++i) {
      const std::string endpoint = EndpointValue(list[i].ip, list[i].port);
      const uint32_t slot = first + i;
      Put(kEndpoints, key + BytesOf(slot), endpoint);
      if (members) Put(kMembers, key + endpoint, std::string(1, '\1'));
    }
  }

  // Which endpoints clients on this node may get there; null: none.
  const Backends* AtSockets(const ResolvedPort& port, const Slots& slots, Entry entry,
                            const std::string& key) {
    const ServicePort& service = port.service;
    // Which address the client will send from is not known yet.
    if (entry == Entry::kLoadBalancerIp && !service.source_ranges.empty()) return nullptr;
    const TrafficOptions traffic{.masquerade_all = options_.masquerade_all,
                                 .detects_pods = options_.detects_pods};
    const Decision pods = Decide(port, entry, Origin::kPod, {}, traffic);
    const Decision node = Decide(port, entry, Origin::kNode, {}, traffic);
    struct Service value {
      .affinity = static_cast<__u32>(service.affinity.count()), .pods = AnswerOf(pods, Origin::kPod),
      .node = AnswerOf(node, Origin::kNode)
    };
    // Pods that packets cannot tell from strangers are left to what packets meet.
    if (!options_.detects_pods && entry != Entry::kClusterIp && pods.fate != Fate::kRefused) {
      value.pods = kPass;
    }
    if (value.pods == kPass && value.node == kPass) return nullptr;
    const Backends* list = nullptr;
    if (node.fate == Fate::kServed) {
      list = node.endpoints == &port.local ? &slots.local : &slots.cluster;
      value.endpoints = static_cast<__u32>(list->size());
    }
    Put(kServices, key, BytesOf(value));
    return list;
  }

  // Which endpoints who comes from outside may get there; null: the rules say what becomes of it.
  const Backends* FromOutside(const ResolvedPort& port, const Slots& slots, Entry entry,
                              const std::string& key) {
    const ServicePort& service = port.service;
    const bool limited = entry == Entry::kLoadBalancerIp && !service.source_ranges.empty();
    // Source ranges are looked at for each packet.
    const Decision decision = Decide(port, limited ? Entry::kExternalIp : entry, Origin::kOutside, {});
    if (decision.fate != Fate::kServed) return nullptr;
    const Backends& list = decision.endpoints == &port.local ? slots.local : slots.cluster;
    struct Outside value {
      .endpoints = static_cast<__u32>(list.size()), .first = FirstSlot(service),
      .affinity = static_cast<__u32>(service.affinity.count()), .masquerade = decision.masquerade,
      .limited = limited
    };
    if (list.size() > 1) value.rows = PutTable(key, list);
    for (const IpPrefix& range : service.source_ranges) {
      if (limited) PutRange(key, range);
    }
    Put(kOutside, key, BytesOf(value));
    return &list;
  }

  uint32_t PutTable(const std::string& key, const Backends& list) {
    const std::vector<uint16_t> table = MaglevTable(list);
    const auto rows = static_cast<uint32_t>(table.size() / KP_ROW_SLOTS);
    for (uint32_t row = 0; row < rows; ++row) {
      const auto* begin = reinterpret_cast<const char*>(&table[row * KP_ROW_SLOTS]);
      Put(kMaglev, key + BytesOf(row), std::string(begin, sizeof(Row)));
    }
    return rows;
  }

  void PutRange(const std::string& key, const IpPrefix& range) {
    const PodRange ip = RangeOf(range);
    const __u32 bits = 8 * sizeof(Vip) + ip.bits;
    Put(kSourceRanges, BytesOf(bits) + key + std::string(reinterpret_cast<const char*>(ip.ip), sizeof ip.ip),
        std::string(1, '\1'));
  }

  const Options& options_;
  SlotsByPort old_slots_;
  SlotsByPort& slots_;
  std::vector<ebpf::Entry> out_;
};

}  // namespace

const char* MapName(MapId map) {
  constexpr const char* kNames[] = {"endpoints", "members",      "maglev",   "source_ranges",
                                    "pods",      "nodeport_ips", "services", "outside"};
  return kNames[map];
}

void FillAddress(const IpAddress& ip, uint32_t (&out)[4]) {
  if (ip.is_v4()) {
    out[2] = htonl(0xffff);
    std::memcpy(&out[3], ip.bytes().data(), 4);
  } else {
    std::memcpy(out, ip.bytes().data(), sizeof out);
  }
}

std::string VipKey(const IpAddress* ip, uint8_t protocol, uint16_t port) {
  return BytesOf(VipOf(ip, protocol, port));
}

std::string EndpointValue(const IpAddress& ip, uint16_t port) { return BytesOf(EndpointOf(ip, port)); }

std::vector<Entry> NodePortEntries(const std::vector<IpAddress>& ips, bool v4) {
  std::vector<Entry> out;
  for (const IpAddress& ip : ips) {
    if (ip.is_v4() != v4) continue;
    Address key{};
    FillAddress(ip, key.ip);
    out.push_back({kNodePortIps, BytesOf(key), std::string(1, '\1')});
  }
  return out;
}

std::vector<Entry> PodEntries(const std::vector<IpPrefix>& cidrs) {
  std::vector<Entry> out;
  for (const IpPrefix& cidr : cidrs) out.push_back({kPods, BytesOf(RangeOf(cidr)), std::string(1, '\1')});
  return out;
}

std::vector<Entry> ContributionOf(const std::vector<ResolvedPort>& ports, const Options& options,
                                  SlotsByPort& slots) {
  Collector collector(options, slots);
  for (const ResolvedPort& port : ports) collector.Add(port);
  return collector.Take();
}

}  // namespace keelson::proxy::ebpf
