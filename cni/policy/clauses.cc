#include "cni/policy/clauses.h"

#include <algorithm>

#include "cni/policy/blocks.h"
#include "lib/crypto/digest.h"

namespace keelson::cni::policy {
namespace {

using nft::Type;

std::string NameOf(const char* kind, bool v4, const std::string& description) {
  return std::string(kind) + (v4 ? "4-" : "6-") + crypto::Sha256Hex(description).substr(0, 24);
}

std::string Describe(const std::vector<PortRange>& ranges) {
  std::string out;
  for (const PortRange& range : ranges) {
    out += std::to_string(range.protocol) + ":" + std::to_string(range.first) + "-" +
           std::to_string(range.last) + ";";
  }
  return out;
}

std::string Describe(const Policy& policy, const Peer& peer) {
  if (peer.block) {
    std::string out = "block " + peer.block->cidr.ToString();
    for (const IpPrefix& except : peer.block->except) out += "," + except.ToString();
    return out;
  }
  std::string out = peer.namespaces ? "all/" + peer.namespaces->Text() : "in " + policy.ns;
  return out + "/" + (peer.pods ? peer.pods->Text() : "");
}

// Ports by number, and those by name that `pod` has; all pods of a rule's other side may differ.
std::vector<PortRange> PortsOf(const Rule& rule, const Pod* pod) {
  std::vector<PortRange> out;
  for (const Port& port : rule.ports) {
    if (port.name.empty()) out.push_back({port.protocol, port.first, port.last});
    if (port.name.empty() || !pod) continue;
    for (const ContainerPort& own : pod->ports) {
      if (own.name == port.name && own.protocol == port.protocol) {
        out.push_back({own.protocol, own.port, own.port});
      }
    }
  }
  return Merged(std::move(out));
}

std::vector<Port> NamesOf(const Rule& rule) {
  std::vector<Port> out;
  for (const Port& port : rule.ports) {
    if (!port.name.empty()) out.push_back(port);
  }
  return out;
}

}  // namespace

ClauseBuilder::ClauseBuilder(const Cluster& cluster, const Members& members, bool v4, Sets& sets)
    : cluster_(cluster), members_(members), v4_(v4), sets_(sets) {}

std::optional<std::vector<Clause>> ClauseBuilder::Of(const Pod& pod, Direction direction) {
  bool ingress = direction == Direction::kIngress, isolated = false;
  std::vector<Clause> out;
  for (auto at = cluster_.policies.lower_bound(pod.ns + "/"); at != cluster_.policies.end(); ++at) {
    const Policy& policy = at->second;
    if (policy.ns != pod.ns) break;
    if (!(ingress ? policy.isolates_ingress : policy.isolates_egress)) continue;
    if (!policy.pods.Matches(pod.labels)) continue;
    isolated = true;
    for (const Rule& rule : ingress ? policy.ingress : policy.egress) {
      AddRule(policy, rule, pod, direction, out);
    }
  }
  if (!isolated) return std::nullopt;
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void ClauseBuilder::AddRule(const Policy& policy, const Rule& rule, const Pod& pod, Direction direction,
                            std::vector<Clause>& out) {
  bool ingress = direction == Direction::kIngress;
  std::vector<PortRange> ranges = PortsOf(rule, ingress ? &pod : nullptr);
  std::vector<Port> names = ingress ? std::vector<Port>() : NamesOf(rule);
  bool any_port = rule.ports.empty();
  if (any_port || !ranges.empty()) {
    std::string ports = any_port ? "" : PortsSet(ranges);
    if (rule.peers.empty()) out.push_back({.ports = ports});
    for (const Peer& peer : rule.peers) {
      if (!peer.block) out.push_back({.peers = PeersSet(policy, peer), .ports = ports});
    }
    if (auto blocks = Blocks(rule, ranges)) out.push_back(*blocks);
  }
  if (names.empty()) return;
  // A name means something on pods only, in a block those with addresses inside.
  std::vector<Peer> peers = rule.peers;
  if (peers.empty()) peers.push_back({.pods = Selector(), .namespaces = Selector()});
  for (const Peer& peer : peers) {
    if (peer.block && peer.block->cidr.is_v4() != v4_) continue;
    out.push_back({.peers = NamedSet(policy, peer, names), .form = Clause::Form::kNamedPorts});
  }
}

// Null when the set is there already.
nft::Ruleset::SetContents* ClauseBuilder::NewSet(const std::string& name, std::vector<Type> key,
                                                 bool interval) {
  auto [set, is_new] = sets_.try_emplace(name);
  if (!is_new) return nullptr;
  set->second.set = {.name = name, .key = std::move(key), .interval = interval};
  return &set->second;
}

std::string ClauseBuilder::PortsSet(const std::vector<PortRange>& ranges) {
  // Addresses play no part, yet each family has its own sets: what one refers to the other never deletes.
  std::string name = NameOf("ports", v4_, Describe(ranges));
  auto* set = NewSet(name, {Type::kInetProto, Type::kInetService}, true);
  if (!set) return name;
  for (const PortRange& range : ranges) {
    std::string key = nft::Key().Proto(range.protocol).Port(range.first).bytes();
    set->elements[key] = {.key = key, .key_end = nft::Key().Proto(range.protocol).Port(range.last).bytes()};
  }
  return name;
}

std::string ClauseBuilder::PeersSet(const Policy& policy, const Peer& peer) {
  std::string name = NameOf("pods", v4_, Describe(policy, peer));
  auto* set = NewSet(name, {v4_ ? Type::kIpv4Addr : Type::kIpv6Addr}, false);
  if (!set) return name;
  members_.ForEach(cluster_, policy.ns, peer, [&](const Members::Member& member) {
    for (const IpAddress& address : member.addresses) {
      if (address.is_v4() != v4_) continue;
      std::string key = nft::Key().Ip(address).bytes();
      set->elements[key] = {.key = key};
    }
  });
  return name;
}

std::string ClauseBuilder::NamedSet(const Policy& policy, const Peer& peer, const std::vector<Port>& ports) {
  std::string description = Describe(policy, peer) + "|";
  for (const Port& port : ports) description += std::to_string(port.protocol) + ":" + port.name + ";";
  std::string name = NameOf("named", v4_, description);
  auto* set =
      NewSet(name, {v4_ ? Type::kIpv4Addr : Type::kIpv6Addr, Type::kInetProto, Type::kInetService}, false);
  if (!set) return name;
  const Peer pods = peer.block ? Peer{.pods = Selector(), .namespaces = Selector()} : peer;
  members_.ForEach(cluster_, policy.ns, pods, [&](const Members::Member& member) {
    for (const Port& port : ports) {
      for (const ContainerPort& own : member.pod->ports) {
        if (own.name != port.name || own.protocol != port.protocol) continue;
        for (const IpAddress& address : member.addresses) {
          if (address.is_v4() != v4_ || (peer.block && !Contains(*peer.block, address))) continue;
          std::string key = nft::Key().Ip(address).Proto(own.protocol).Port(own.port).bytes();
          set->elements[key] = {.key = key};
        }
      }
    }
  });
  return name;
}

std::optional<Clause> ClauseBuilder::Blocks(const Rule& rule, const std::vector<PortRange>& ranges) {
  std::vector<IpRange> addresses;
  for (const Peer& peer : rule.peers) {
    if (!peer.block || peer.block->cidr.is_v4() != v4_) continue;
    for (IpRange& range : AddressesOf(*peer.block)) addresses.push_back(std::move(range));
  }
  if (addresses.empty()) return std::nullopt;
  addresses = Merged(std::move(addresses));
  std::string description = Describe(ranges) + "|";
  for (const IpRange& range : addresses) {
    description += range.first.ToString() + "-" + range.last.ToString() + ";";
  }
  Clause out{.peers = NameOf("blocks", v4_, description),
             .form = ranges.empty() ? Clause::Form::kBlocks : Clause::Form::kBlocksAndPorts};
  std::vector<Type> key = {v4_ ? Type::kIpv4Addr : Type::kIpv6Addr, Type::kInetProto};
  if (!ranges.empty()) key.push_back(Type::kInetService);
  auto* set = NewSet(out.peers, std::move(key), true);
  if (!set) return out;
  auto add = [&](const nft::Key& first, const nft::Key& last) {
    set->elements[first.bytes()] = {.key = first.bytes(), .key_end = last.bytes()};
  };
  for (const IpRange& range : addresses) {
    if (ranges.empty()) add(nft::Key().Ip(range.first).Proto(0), nft::Key().Ip(range.last).Proto(255));
    for (const PortRange& port : ranges) {
      add(nft::Key().Ip(range.first).Proto(port.protocol).Port(port.first),
          nft::Key().Ip(range.last).Proto(port.protocol).Port(port.last));
    }
  }
  return out;
}

}  // namespace keelson::cni::policy
