#include "cni/policy/testing/naive.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace keelson::cni::policy {
namespace {

struct World {
  const Cluster& cluster;
  const ResolvedNames& names;
};

const Pod* PodAt(const World& world, const IpAddress& address) {
  for (const auto& [key, pod] : world.cluster.pods) {
    if (pod.host_network || pod.finished) continue;
    for (const IpAddress& own : pod.addresses) {
      if (own == address) return &pod;
    }
  }
  return nullptr;
}

// "*.example.com" stands for names with one label more, or several; anything else for itself.
bool NameMatches(std::string_view pattern, std::string_view name) {
  auto labels = [](std::string_view text) {
    std::vector<std::string_view> out;
    for (size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.')) {
      out.push_back(text.substr(0, dot));
      text.remove_prefix(dot + 1);
    }
    out.push_back(text);
    return std::vector<std::string_view>(out.rbegin(), out.rend());
  };
  std::vector<std::string_view> wanted = labels(pattern), found = labels(name);
  if (wanted.back() != "*") return wanted == found;
  wanted.pop_back();
  return found.size() > wanted.size() && std::equal(wanted.begin(), wanted.end(), found.begin());
}

bool DomainMatches(const World& world, const std::string& pattern, const IpAddress& address) {
  for (const auto& [name, addresses] : world.names) {
    bool known = std::find(addresses.begin(), addresses.end(), address) != addresses.end();
    if (known && NameMatches(pattern, name)) return true;
  }
  return false;
}

bool NodeMatches(const World& world, const Selector& selector, const IpAddress& address) {
  for (const auto& [name, node] : world.cluster.nodes) {
    if (!selector.Matches(node.labels)) continue;
    for (const IpAddress& own : node.addresses) {
      if (own == address) return true;
    }
  }
  return false;
}

bool PeerMatches(const World& world, const Policy& policy, const Peer& peer, const IpAddress& address) {
  if (!peer.domain.empty()) return DomainMatches(world, peer.domain, address);
  if (peer.nodes) return NodeMatches(world, *peer.nodes, address);
  if (peer.block) {
    if (!peer.block->cidr.Contains(address)) return false;
    for (const IpPrefix& except : peer.block->except) {
      if (except.Contains(address)) return false;
    }
    return true;
  }
  const Pod* pod = PodAt(world, address);
  if (!pod) return false;
  if (peer.namespaces) {
    auto labels = world.cluster.namespaces.find(pod->ns);
    if (labels == world.cluster.namespaces.end() || !peer.namespaces->Matches(labels->second)) return false;
  } else if (pod->ns != policy.ns) {
    return false;
  }
  return !peer.pods || peer.pods->Matches(pod->labels);
}

bool PortMatches(const World& world, const Port& port, const Packet& packet) {
  if (port.protocol != packet.protocol) return false;
  if (port.name.empty()) return packet.port >= port.first && packet.port <= port.last;
  const Pod* target = PodAt(world, packet.destination);
  if (!target) return false;
  for (const ContainerPort& own : target->ports) {
    if (own.name == port.name && own.protocol == port.protocol && own.port == packet.port) return true;
  }
  return false;
}

bool RuleMatches(const World& world, const Policy& policy, const Rule& rule, const Packet& packet,
                 const IpAddress& other) {
  bool peer_matches = rule.peers.empty(), port_matches = rule.ports.empty();
  for (const Peer& peer : rule.peers) peer_matches |= PeerMatches(world, policy, peer, other);
  for (const Port& port : rule.ports) port_matches |= PortMatches(world, port, packet);
  return peer_matches && port_matches;
}

enum class Decision { kNone, kAccept, kDeny };

// What the ClusterNetworkPolicies of a tier decide: the first rule that matches counts.
Decision Decide(const World& world, ClusterPolicy::Tier tier, const Pod& pod, bool ingress,
                const Packet& packet) {
  std::vector<const ClusterPolicy*> policies;
  for (const auto& [name, policy] : world.cluster.cluster_policies) {
    auto labels = world.cluster.namespaces.find(pod.ns);
    if (policy.tier != tier || labels == world.cluster.namespaces.end()) continue;
    if (policy.namespaces.Matches(labels->second) && policy.pods.Matches(pod.labels)) {
      policies.push_back(&policy);
    }
  }
  std::sort(policies.begin(), policies.end(), [](const ClusterPolicy* a, const ClusterPolicy* b) {
    return a->priority != b->priority ? a->priority < b->priority : a->name < b->name;
  });
  for (const ClusterPolicy* policy : policies) {
    for (const TierRule& rule : ingress ? policy->ingress : policy->egress) {
      const Rule what{.peers = rule.peers, .ports = rule.ports};
      if (!RuleMatches(world, {}, what, packet, ingress ? packet.source : packet.destination)) continue;
      if (rule.action == TierRule::Action::kAccept) return Decision::kAccept;
      if (rule.action == TierRule::Action::kDeny) return Decision::kDeny;
      return Decision::kNone;  // passed on to the next tier
    }
  }
  return Decision::kNone;
}

bool Passes(const World& world, const Pod& pod, bool ingress, const Packet& packet) {
  Decision admin = Decide(world, ClusterPolicy::Tier::kAdmin, pod, ingress, packet);
  if (admin != Decision::kNone) return admin == Decision::kAccept;
  // A pod that reaches itself by a Service: NetworkPolicies do not forbid it.
  bool isolated = false, permitted = packet.source == packet.destination;
  for (const auto& [key, policy] : world.cluster.policies) {
    if (policy.ns != pod.ns || !policy.pods.Matches(pod.labels)) continue;
    if (!(ingress ? policy.isolates_ingress : policy.isolates_egress)) continue;
    isolated = true;
    for (const Rule& rule : ingress ? policy.ingress : policy.egress) {
      permitted |= RuleMatches(world, policy, rule, packet, ingress ? packet.source : packet.destination);
    }
  }
  if (isolated) return permitted;
  return Decide(world, ClusterPolicy::Tier::kBaseline, pod, ingress, packet) != Decision::kDeny;
}

}  // namespace

bool Permitted(const Cluster& cluster, const ResolvedNames& names, const std::string& node,
               const Packet& packet) {
  const World world{cluster, names};
  const Pod* source = PodAt(world, packet.source);
  const Pod* target = PodAt(world, packet.destination);
  if (source && source->node == node && !Passes(world, *source, false, packet)) return false;
  return !target || target->node != node || Passes(world, *target, true, packet);
}

bool PermittedToOwnNode(const Cluster& cluster, const ResolvedNames& names, const Packet& packet) {
  const World world{cluster, names};
  const Pod* source = PodAt(world, packet.source);
  if (!source) return true;
  Decision admin = Decide(world, ClusterPolicy::Tier::kAdmin, *source, false, packet);
  if (admin != Decision::kNone) return admin == Decision::kAccept;
  for (const auto& [key, policy] : cluster.policies) {
    if (policy.ns == source->ns && policy.isolates_egress && policy.pods.Matches(source->labels)) return true;
  }
  return Decide(world, ClusterPolicy::Tier::kBaseline, *source, false, packet) != Decision::kDeny;
}

}  // namespace keelson::cni::policy
