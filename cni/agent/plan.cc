#include "cni/agent/plan.h"

#include <algorithm>

namespace keelson::cni::agent {
namespace {

// The kernel's value for "no metric" in each family, as its listings show it.
constexpr int kMetricV4 = 0, kMetricV6 = 1024;

bool HasRealHosts(const IpPrefix& cidr) {
  return cidr.length() > 0 && !cidr.address().IsLoopback() && !cidr.address().IsLinkLocal() &&
         !cidr.address().IsMulticast() && !cidr.address().IsUnspecified();
}

// Visits the nodes and keeps what does not conflict with earlier ones: first this node, then its peers by
// name, so that all nodes of the cluster get the same result, except about their own CIDRs.
class Admission {
 public:
  Admission(const NodeMap& nodes, std::vector<std::string>& problems) : problems_(problems) {
    for (const auto& [name, node] : nodes) {
      for (const IpAddress& address : node.addresses) addresses_.push_back({address, &name});
    }
    std::sort(addresses_.begin(), addresses_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  std::vector<IpPrefix> Admit(const NodeInfo& node) {
    for (const std::string& text : node.ignored) Problem(node.name, text);
    std::vector<IpPrefix> out;
    for (const IpPrefix& cidr : node.pod_cidrs) {
      std::string why = Objection(cidr);
      if (!why.empty()) {
        Problem(node.name, "podCIDR " + cidr.ToString() + " " + why);
        continue;
      }
      taken_.emplace(cidr.Network(), Taken{cidr, node.name});
      out.push_back(cidr);
    }
    return out;
  }

  void Problem(const std::string& node, const std::string& what) {
    problems_.push_back("node " + node + ": " + what);
  }

 private:
  struct Taken {
    IpPrefix cidr;
    std::string node;
  };

  std::string Objection(const IpPrefix& cidr) const {
    if (!HasRealHosts(cidr)) return "cannot hold pods";
    auto inside = std::lower_bound(addresses_.begin(), addresses_.end(), cidr.Network(),
                                   [](const auto& entry, const IpAddress& ip) { return entry.first < ip; });
    if (inside != addresses_.end() && cidr.Contains(inside->first)) {
      return "holds the address " + inside->first.ToString() + " of node " + *inside->second;
    }
    // Accepted prefixes do not overlap each other, so only the neighbours in order can overlap this one.
    auto after = taken_.lower_bound(cidr.Network());
    if (after != taken_.end() && after->second.cidr.Overlaps(cidr)) return Overlap(after->second);
    if (after != taken_.begin() && std::prev(after)->second.cidr.Overlaps(cidr)) {
      return Overlap(std::prev(after)->second);
    }
    return "";
  }
  static std::string Overlap(const Taken& other) {
    return "overlaps " + other.cidr.ToString() + " of node " + other.node;
  }

  std::vector<std::string>& problems_;
  std::vector<std::pair<IpAddress, const std::string*>> addresses_;
  std::map<IpAddress, Taken> taken_;
};

class Planner {
 public:
  Planner(const Config& config, const NodeMap& nodes, const NodeInfo& self, const HostState& host)
      : config_(config), nodes_(nodes), self_(self), host_(host), admission_(nodes, plan_.problems) {}

  Result<Plan> Run() {
    plan_.pod_cidrs = admission_.Admit(self_);
    if (plan_.pod_cidrs.empty()) {
      return Error(Code::kNotFound, "node " + self_.name + " has no pod CIDR yet");
    }
    FindUnderlay();
    for (const auto& [name, node] : nodes_) {
      if (name != self_.name) AddPeer(node);
    }
    SetMtu();
    if (plan_.vxlan) plan_.vxlan->mtu = plan_.pod_mtu;
    return std::move(plan_);
  }

 private:
  void FindUnderlay() {
    if (self_.addresses.empty()) return;
    plan_.underlay = self_.addresses[0];
    for (const netlink::Address& address : host_.addresses) {
      if (address.prefix.address() == *plan_.underlay) plan_.uplink = address.link_index;
    }
    if (plan_.uplink == 0 && config_.mode != Mode::kNone) {
      admission_.Problem(self_.name, "its InternalIP " + plan_.underlay->ToString() + " is on no link here");
    }
  }

  void AddPeer(const NodeInfo& node) {
    PeerPlan peer{.name = node.name, .address = {}, .pod_cidrs = admission_.Admit(node), .wireguard_key = {}};
    peer.wireguard_key = node.wireguard_key;
    const IpAddress* end = plan_.underlay ? node.AddressOf(plan_.underlay->is_v4()) : nullptr;
    if (end) peer.address = *end;
    if (peer.pod_cidrs.empty()) return;
    if (config_.mode != Mode::kNone) {
      for (const IpPrefix& cidr : peer.pod_cidrs) AddRoute(node, peer, cidr, end);
    }
    plan_.peers.push_back(std::move(peer));
  }

  void AddRoute(const NodeInfo& node, const PeerPlan& peer, const IpPrefix& cidr, const IpAddress* end) {
    switch (config_.encryption) {
      case Encryption::kWireguard:
        return AddWireguard(node, peer, cidr, end);
      case Encryption::kIpsec:
        return AddIpsec(node, cidr, end);
      case Encryption::kNone:
        break;
    }
    if (config_.mode != Mode::kVxlan) {
      const IpAddress* hop = node.AddressOf(cidr.is_v4());
      const netlink::Route* way = hop ? RouteTo(host_, *hop) : nullptr;
      if (way && !way->gateway && way->link_index > 0) {
        netlink::Route route = NewRoute(cidr, way->link_index);
        route.gateway = *hop;
        return Add(Way::kHostGw, route);
      }
      if (config_.mode == Mode::kHostGw) {
        return admission_.Problem(node.name,
                                  hop ? hop->ToString() + " is on no link of this node, and --mode is host-gw"
                                      : "it has no InternalIP of the family of " + cidr.ToString());
      }
    }
    AddVxlan(node, cidr, end);
  }

  void AddVxlan(const NodeInfo& node, const IpPrefix& cidr, const IpAddress* end) {
    if (!end || plan_.uplink == 0) return NoEnd(node);
    if (!plan_.vxlan) StartTunnel();
    netlink::MacAddress mac = TunnelMac(node.name);
    netlink::Route route = NewRoute(cidr, kTunnelLink);
    route.gateway = cidr.Network();
    route.onlink = true;
    Add(Way::kVxlan, route);
    plan_.neighbors.push_back(
        {.link_index = kTunnelLink, .address = cidr.Network(), .mac = mac, .permanent = true});
    netlink::Forwarding entry{.link_index = kTunnelLink, .mac = mac, .destination = *end};
    if (plan_.forwarding.empty() || plan_.forwarding.back() != entry) plan_.forwarding.push_back(entry);
  }

  void StartTunnel() {
    plan_.vxlan.emplace();
    plan_.vxlan->device = config_.vxlan_device;
    plan_.vxlan->vxlan = {.id = config_.vxlan_id, .port = config_.vxlan_port, .local = *plan_.underlay};
    plan_.vxlan->mac = TunnelMac(self_.name);
    for (const IpPrefix& cidr : plan_.pod_cidrs) {
      plan_.vxlan->addresses.push_back(IpPrefix::Host(cidr.Network()));
    }
  }

  // The policies do the rest; the route only has to exist and lead the way that ESP will take.
  void AddIpsec(const NodeInfo& node, const IpPrefix& cidr, const IpAddress* end) {
    const IpAddress* hop = node.AddressOf(cidr.is_v4());
    const netlink::Route* way = hop ? RouteTo(host_, *hop) : nullptr;
    if (!end || !way || way->link_index <= 0) return NoEnd(node);
    netlink::Route route = NewRoute(cidr, way->link_index);
    route.gateway = way->gateway ? *way->gateway : *hop;
    // The policies use this address for this node.
    if (const IpAddress* own = self_.AddressOf(cidr.is_v4())) route.source = *own;
    Add(Way::kIpsec, route);
  }

  void AddWireguard(const NodeInfo& node, const PeerPlan& peer, const IpPrefix& cidr, const IpAddress* end) {
    if (!end) return NoEnd(node);
    if (peer.wireguard_key.empty()) {
      return admission_.Problem(node.name,
                                "has published no WireGuard key yet: no way to " + cidr.ToString());
    }
    Add(Way::kWireguard, NewRoute(cidr, kTunnelLink));
  }

  void NoEnd(const NodeInfo& node) {
    admission_.Problem(node.name, plan_.underlay ? "no way between it and " + plan_.underlay->ToString()
                                                 : "this node has no InternalIP yet");
  }

  static netlink::Route NewRoute(const IpPrefix& cidr, int link_index) {
    netlink::Route route{.destination = cidr};
    route.link_index = link_index;
    route.metric = cidr.is_v4() ? kMetricV4 : kMetricV6;
    route.protocol = kRouteProtocol;
    return route;
  }

  void Add(Way way, const netlink::Route& route) {
    plan_.routes.push_back(route);
    ++plan_.ways[way];
  }

  void SetMtu() {
    int uplink_mtu = 1500;
    for (const netlink::Link& link : host_.links) {
      if (link.index == plan_.uplink && link.mtu > 0) uplink_mtu = link.mtu;
    }
    bool tunnel = plan_.vxlan || config_.mode == Mode::kVxlan;
    int overhead = Overhead(config_.encryption, tunnel, !plan_.underlay || plan_.underlay->is_v4());
    plan_.pod_mtu = config_.mtu > 0 ? config_.mtu : uplink_mtu - overhead;
    // IPv6 needs 1280; smaller links fragment below it.
    bool v6 = std::any_of(plan_.pod_cidrs.begin(), plan_.pod_cidrs.end(),
                          [](const IpPrefix& cidr) { return !cidr.is_v4(); });
    plan_.pod_mtu = std::max(plan_.pod_mtu, v6 ? 1280 : 576);
  }

  const Config& config_;
  const NodeMap& nodes_;
  const NodeInfo& self_;
  const HostState& host_;
  Plan plan_;
  Admission admission_;
};

}  // namespace

std::string_view ToString(Way way) {
  switch (way) {
    case Way::kHostGw:
      return "host-gw";
    case Way::kVxlan:
      return "vxlan";
    case Way::kIpsec:
      return "ipsec";
    case Way::kWireguard:
      break;
  }
  return "wireguard";
}

Result<Plan> MakePlan(const Config& config, const NodeMap& nodes, const HostState& host) {
  auto self = nodes.find(config.node_name);
  if (self == nodes.end()) {
    return Error(Code::kNotFound, "there is no Node " + config.node_name + " yet");
  }
  return Planner(config, nodes, self->second, host).Run();
}

netlink::MacAddress TunnelMac(std::string_view node_name) {
  // FNV-1a and splitmix64's finalizer to spread it. Uses 46 bits, so that among 1000 nodes two equal ones
  // occur in one of a hundred million clusters.
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : node_name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  hash ^= hash >> 31;
  std::array<uint8_t, 6> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(hash >> (8 * i));
  bytes[0] = static_cast<uint8_t>((bytes[0] & ~1u) | 2u);  // unicast, locally administered
  return netlink::MacAddress(bytes);
}

const netlink::Route* RouteTo(const HostState& host, const IpAddress& to) {
  const netlink::Route* best = nullptr;
  for (const netlink::Route& route : host.routes) {
    if (route.protocol == kRouteProtocol || route.destination.is_v4() != to.is_v4() ||
        !route.destination.Contains(to)) {
      continue;
    }
    bool longer = best && route.destination.length() > best->destination.length();
    bool cheaper =
        best && route.destination.length() == best->destination.length() && route.metric < best->metric;
    if (!best || longer || cheaper) best = &route;
  }
  return best;
}

int Overhead(Encryption encryption, bool vxlan, bool v4_underlay) {
  const int ip = v4_underlay ? 20 : 40;
  switch (encryption) {
    case Encryption::kIpsec:
      return ip + 8 + 8 + 5 + 16;  // SPI and sequence number, IV, trailer with padding, ICV
    case Encryption::kWireguard:
      return ip + 8 + 32;  // UDP, header and tag
    case Encryption::kNone:
      break;
  }
  return vxlan ? ip + 8 + 8 + 14 : 0;  // UDP, VXLAN, inner Ethernet
}

std::vector<IpPrefix> Aggregate(std::vector<IpPrefix> prefixes) {
  for (IpPrefix& prefix : prefixes) prefix = prefix.Masked();
  std::sort(prefixes.begin(), prefixes.end());  // by address, then length: a prefix comes before its parts
  std::vector<IpPrefix> out;
  for (const IpPrefix& prefix : prefixes) {
    bool covered = !out.empty() && out.back().is_v4() == prefix.is_v4() &&
                   out.back().Contains(prefix.address()) && out.back().length() <= prefix.length();
    if (covered) continue;
    out.push_back(prefix);
    // Two halves make a whole, which may be a half itself.
    while (out.size() > 1) {
      const IpPrefix& low = out[out.size() - 2];
      const IpPrefix& high = out.back();
      if (low.length() != high.length() || low.length() == 0 || low.is_v4() != high.is_v4()) break;
      IpPrefix whole(low.address(), low.length() - 1);
      if (whole.Network() != low.address() || !whole.Contains(high.address())) break;
      out.pop_back();
      out.back() = whole;
    }
  }
  return out;
}

}  // namespace keelson::cni::agent
