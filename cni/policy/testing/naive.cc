#include "cni/policy/testing/naive.h"

#include <algorithm>
#include <vector>

namespace keelson::cni::policy {
namespace {

const Pod* PodAt(const Cluster& cluster, const IpAddress& address) {
  for (const auto& [key, pod] : cluster.pods) {
    if (pod.host_network || pod.finished) continue;
    for (const IpAddress& own : pod.addresses) {
      if (own == address) return &pod;
    }
  }
  return nullptr;
}

bool PeerMatches(const Cluster& cluster, const Policy& policy, const Peer& peer, const IpAddress& address) {
  if (peer.block) {
    if (!peer.block->cidr.Contains(address)) return false;
    for (const IpPrefix& except : peer.block->except) {
      if (except.Contains(address)) return false;
    }
    return true;
  }
  const Pod* pod = PodAt(cluster, address);
  if (!pod) return false;
  if (peer.namespaces) {
    auto labels = cluster.namespaces.find(pod->ns);
    if (labels == cluster.namespaces.end() || !peer.namespaces->Matches(labels->second)) return false;
  } else if (pod->ns != policy.ns) {
    return false;
  }
  return !peer.pods || peer.pods->Matches(pod->labels);
}

bool PortMatches(const Cluster& cluster, const Port& port, const Packet& packet) {
  if (port.protocol != packet.protocol) return false;
  if (port.name.empty()) return packet.port >= port.first && packet.port <= port.last;
  const Pod* target = PodAt(cluster, packet.destination);
  if (!target) return false;
  for (const ContainerPort& own : target->ports) {
    if (own.name == port.name && own.protocol == port.protocol && own.port == packet.port) return true;
  }
  return false;
}

bool RuleMatches(const Cluster& cluster, const Policy& policy, const Rule& rule, const Packet& packet,
                 const IpAddress& other) {
  bool peer_matches = rule.peers.empty(), port_matches = rule.ports.empty();
  for (const Peer& peer : rule.peers) peer_matches |= PeerMatches(cluster, policy, peer, other);
  for (const Port& port : rule.ports) port_matches |= PortMatches(cluster, port, packet);
  return peer_matches && port_matches;
}

enum class Decision { kNone, kAccept, kDeny };

// What the ClusterNetworkPolicies of a tier decide: the first rule that matches counts.
Decision Decide(const Cluster& cluster, ClusterPolicy::Tier tier, const Pod& pod, bool ingress,
                const Packet& packet) {
  std::vector<ClusterPolicy> policies;
  for (const auto& [name, policy] : cluster.cluster_policies) {
    auto labels = cluster.namespaces.find(pod.ns);
    if (policy.tier != tier || labels == cluster.namespaces.end()) continue;
    if (policy.namespaces.Matches(labels->second) && policy.pods.Matches(pod.labels)) {
      policies.push_back(policy);
    }
  }
  std::sort(policies.begin(), policies.end(), [](const ClusterPolicy& a, const ClusterPolicy& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.name < b.name;
  });
  for (const ClusterPolicy& policy : policies) {
    for (const TierRule& rule : ingress ? policy.ingress : policy.egress) {
      const Rule what{.peers = rule.peers, .ports = rule.ports};
      if (!RuleMatches(cluster, {}, what, packet, ingress ? packet.source : packet.destination)) continue;
      if (rule.action == TierRule::Action::kAccept) return Decision::kAccept;
      if (rule.action == TierRule::Action::kDeny) return Decision::kDeny;
      return Decision::kNone;  // passed on to the next tier
    }
  }
  return Decision::kNone;
}

bool Passes(const Cluster& cluster, const Pod& pod, bool ingress, const Packet& packet) {
  Decision admin = Decide(cluster, ClusterPolicy::Tier::kAdmin, pod, ingress, packet);
  if (admin != Decision::kNone) return admin == Decision::kAccept;
  bool isolated = false, permitted = false;
  for (const auto& [key, policy] : cluster.policies) {
    if (policy.ns != pod.ns || !policy.pods.Matches(pod.labels)) continue;
    if (!(ingress ? policy.isolates_ingress : policy.isolates_egress)) continue;
    isolated = true;
    for (const Rule& rule : ingress ? policy.ingress : policy.egress) {
      permitted |= RuleMatches(cluster, policy, rule, packet, ingress ? packet.source : packet.destination);
    }
  }
  if (isolated) return permitted;
  return Decide(cluster, ClusterPolicy::Tier::kBaseline, pod, ingress, packet) != Decision::kDeny;
}

}  // namespace

bool Permitted(const Cluster& cluster, const std::string& node, const Packet& packet) {
  const Pod* source = PodAt(cluster, packet.source);
  const Pod* target = PodAt(cluster, packet.destination);
  if (source && source == target) return true;
  if (source && source->node == node && !Passes(cluster, *source, false, packet)) return false;
  return !target || target->node != node || Passes(cluster, *target, true, packet);
}

}  // namespace keelson::cni::policy
