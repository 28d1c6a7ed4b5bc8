#include "cni/agent/dataplane.h"

#include <algorithm>
#include <set>

#include "lib/base/log.h"

namespace keelson::cni::agent {
namespace {

template <typename T, typename U>
bool Holds(const std::vector<T>& all, const U& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Compares only what the agent sets: a listing fills in more fields.
bool SameRoute(const netlink::Route& a, const netlink::Route& b) {
  return a.destination == b.destination && a.gateway == b.gateway && a.link_index == b.link_index &&
         a.source == b.source && a.metric == b.metric && a.onlink == b.onlink && a.protocol == b.protocol;
}

const netlink::Link* FindLink(const HostState& host, const std::string& name) {
  for (const netlink::Link& link : host.links) {
    if (link.name == name) return &link;
  }
  return nullptr;
}

class Applier {
 public:
  Applier(netlink::Socket& socket, const Config& config, const Plan& plan, const HostState& host)
      : socket_(socket), config_(config), plan_(plan), host_(host) {}

  Result<Changes> Run(int wireguard_link) {
    int tunnel = wireguard_link;
    if (plan_.vxlan) {
      KEELSON_ASSIGN_OR_RETURN(tunnel, EnsureTunnel(*plan_.vxlan));
    }
    std::vector<netlink::Neighbor> neighbors;
    std::vector<netlink::Forwarding> forwarding;
    if (plan_.vxlan && !fresh_) {
      KEELSON_ASSIGN_OR_RETURN(neighbors, netlink::ListNeighbors(socket_, tunnel));
      KEELSON_ASSIGN_OR_RETURN(forwarding, netlink::ListForwarding(socket_, tunnel));
    }
    Difference difference = Compare(plan_, tunnel, host_.routes, neighbors, forwarding);
    KEELSON_RETURN_IF_ERROR(Write(difference));
    if (!plan_.vxlan) KEELSON_RETURN_IF_ERROR(DropTunnel());
    return std::move(changes_);
  }

 private:
  Result<int> EnsureTunnel(const TunnelPlan& wanted) {
    const netlink::Link* link = FindLink(host_, wanted.device);
    if (link) {
      KEELSON_ASSIGN_OR_RETURN(bool fits, Fits(*link, wanted));
      if (!fits) {
        log::Info("VXLAN device is made anew, its settings have changed", {{"device", wanted.device}});
        KEELSON_RETURN_IF_ERROR(netlink::DeleteLink(socket_, link->index));
        ++changes_.deleted["tunnel"];
        link = nullptr;
      }
    }
    if (!link) {
      KEELSON_RETURN_IF_ERROR(
          netlink::CreateVxlan(socket_, wanted.device, wanted.vxlan, wanted.mac, wanted.mtu));
      ++changes_.set["tunnel"];
      fresh_ = true;
      KEELSON_ASSIGN_OR_RETURN(netlink::Link made, netlink::GetLink(socket_, wanted.device));
      KEELSON_RETURN_IF_ERROR(EnsureAddresses(made.index, wanted));
      return made.index;
    }
    netlink::LinkChange change;
    if (!link->up) change.up = true;
    if (link->mtu != wanted.mtu) change.mtu = wanted.mtu;
    if (link->mac != wanted.mac) change.mac = wanted.mac;
    if (change.up || change.mtu || change.mac) {
      KEELSON_RETURN_IF_ERROR(netlink::ChangeLink(socket_, link->index, change));
      ++changes_.set["tunnel"];
    }
    KEELSON_RETURN_IF_ERROR(EnsureAddresses(link->index, wanted));
    return link->index;
  }

  Result<bool> Fits(const netlink::Link& link, const TunnelPlan& wanted) {
    if (link.kind != "vxlan") {
      return Error(Code::kAlreadyExists, "link " + link.name + " exists and is no VXLAN device");
    }
    KEELSON_ASSIGN_OR_RETURN(netlink::Vxlan found, netlink::GetVxlan(socket_, link.name));
    return found == wanted.vxlan;
  }

  Result<> EnsureAddresses(int index, const TunnelPlan& wanted) {
    std::vector<IpPrefix> found;
    for (const netlink::Address& address : host_.addresses) {
      if (address.link_index == index && !address.link_scope) found.push_back(address.prefix);
    }
    for (const IpPrefix& prefix : wanted.addresses) {
      if (Holds(found, prefix)) continue;
      Result<> added = netlink::AddAddress(socket_, index, prefix);
      if (!added && !added.error().Is(Code::kAlreadyExists)) return added.error();
      ++changes_.set["address"];
    }
    for (const IpPrefix& prefix : found) {
      if (Holds(wanted.addresses, prefix)) continue;
      Result<> gone = netlink::DeleteAddress(socket_, index, prefix);
      if (!gone && !gone.error().Is(Code::kNotFound)) return gone.error();
      ++changes_.deleted["address"];
    }
    return {};
  }

  // In auto mode the last peer behind a router may go; then the device goes too.
  Result<> DropTunnel() {
    const netlink::Link* link = FindLink(host_, config_.vxlan_device);
    if (!link || link->kind != "vxlan") return {};
    KEELSON_RETURN_IF_ERROR(netlink::DeleteLink(socket_, link->index));
    ++changes_.deleted["tunnel"];
    return {};
  }

  Result<> Write(const Difference& d) {
    netlink::Batch batch(socket_);
    for (const auto& entry : d.replace_forwarding) batch.ReplaceForwarding(entry);
    for (const auto& neighbor : d.replace_neighbors) batch.ReplaceNeighbor(neighbor);
    for (const auto& route : d.replace_routes) batch.ReplaceRoute(route);
    for (const auto& route : d.delete_routes) batch.DeleteRoute(route);
    for (const auto& neighbor : d.delete_neighbors) {
      batch.DeleteNeighbor(neighbor.link_index, neighbor.address);
    }
    for (const auto& entry : d.delete_forwarding) batch.DeleteForwarding(entry);
    KEELSON_ASSIGN_OR_RETURN(changes_.refused, batch.Run());
    auto count = [](std::map<std::string, int>& into, const char* kind, size_t number) {
      if (number > 0) into[kind] += static_cast<int>(number);
    };
    count(changes_.set, "forwarding", d.replace_forwarding.size());
    count(changes_.set, "neighbour", d.replace_neighbors.size());
    count(changes_.set, "route", d.replace_routes.size());
    count(changes_.deleted, "forwarding", d.delete_forwarding.size());
    count(changes_.deleted, "neighbour", d.delete_neighbors.size());
    count(changes_.deleted, "route", d.delete_routes.size());
    return {};
  }

  netlink::Socket& socket_;
  const Config& config_;
  const Plan& plan_;
  const HostState& host_;
  Changes changes_;
  bool fresh_ = false;  // the tunnel device has just been made
};

}  // namespace

int Changes::total() const {
  int out = 0;
  for (const auto& [kind, number] : set) out += number;
  for (const auto& [kind, number] : deleted) out += number;
  return out;
}

Result<HostState> ReadHost(netlink::Socket& socket) {
  HostState host;
  KEELSON_ASSIGN_OR_RETURN(host.links, netlink::ListLinks(socket));
  KEELSON_ASSIGN_OR_RETURN(host.addresses, netlink::ListAddresses(socket));
  KEELSON_ASSIGN_OR_RETURN(host.routes, netlink::ListRoutes(socket));
  return host;
}

Difference Compare(const Plan& plan, int tunnel_link, const std::vector<netlink::Route>& routes,
                   const std::vector<netlink::Neighbor>& neighbors,
                   const std::vector<netlink::Forwarding>& forwarding) {
  Difference out;
  std::multimap<IpPrefix, const netlink::Route*> present;
  for (const netlink::Route& route : routes) present.emplace(route.destination, &route);
  std::set<IpPrefix> wanted;
  for (netlink::Route route : plan.routes) {
    if (route.link_index == kTunnelLink) route.link_index = tunnel_link;
    wanted.insert(route.destination);
    auto [first, last] = present.equal_range(route.destination);
    bool there = std::any_of(first, last, [&](const auto& entry) { return SameRoute(*entry.second, route); });
    if (!there) out.replace_routes.push_back(route);
    // Of two routes with the same destination, deletes the one with the wrong metric.
    for (auto it = first; it != last; ++it) {
      bool ours = it->second->protocol == kRouteProtocol && !SameRoute(*it->second, route);
      if (ours && (there || it->second->metric != route.metric)) out.delete_routes.push_back(*it->second);
    }
  }
  for (const netlink::Route& route : routes) {
    if (route.protocol == kRouteProtocol && !wanted.contains(route.destination)) {
      out.delete_routes.push_back(route);
    }
  }

  std::map<IpAddress, const netlink::Neighbor*> known;
  for (const netlink::Neighbor& neighbor : neighbors) known[neighbor.address] = &neighbor;
  for (netlink::Neighbor neighbor : plan.neighbors) {
    neighbor.link_index = tunnel_link;
    auto found = known.find(neighbor.address);
    bool there = found != known.end() && found->second->mac == neighbor.mac && found->second->permanent;
    if (!there) out.replace_neighbors.push_back(neighbor);
    if (found != known.end()) known.erase(found);
  }
  for (const auto& [address, neighbor] : known) {
    if (neighbor->permanent) out.delete_neighbors.push_back(*neighbor);
  }

  std::set<netlink::Forwarding> behind(forwarding.begin(), forwarding.end());
  std::set<netlink::MacAddress> kept;
  for (netlink::Forwarding entry : plan.forwarding) {
    entry.link_index = tunnel_link;
    kept.insert(entry.mac);
    if (!behind.contains(entry)) out.replace_forwarding.push_back(entry);
  }
  for (const netlink::Forwarding& entry : behind) {
    if (!kept.contains(entry.mac)) out.delete_forwarding.push_back(entry);
  }
  return out;
}

Result<Changes> Apply(netlink::Socket& socket, const Config& config, const Plan& plan, const HostState& host,
                      int wireguard_link) {
  return Applier(socket, config, plan, host).Run(wireguard_link);
}

Result<Changes> RemoveAll(netlink::Socket& socket, const Config& config) {
  KEELSON_ASSIGN_OR_RETURN(HostState host, ReadHost(socket));
  return Applier(socket, config, Plan{}, host).Run(0);
}

}  // namespace keelson::cni::agent
