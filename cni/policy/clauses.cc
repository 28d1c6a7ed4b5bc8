#include "cni/policy/clauses.h"

#include <algorithm>
#include <tuple>

namespace keelson::cni::policy {
namespace {

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

std::string_view NameOf(const SetRef& set) { return set ? std::string_view(set->set.name) : ""; }
auto Order(const Clause& clause) {
  return std::make_tuple(NameOf(clause.peers), NameOf(clause.ports), clause.form);
}

}  // namespace

void Normalize(std::vector<Clause>& clauses) {
  std::sort(clauses.begin(), clauses.end(), [](const Clause& a, const Clause& b) {
    return std::tuple_cat(Order(a), std::tie(a.note)) < std::tuple_cat(Order(b), std::tie(b.note));
  });
  std::vector<Clause> out;
  out.reserve(clauses.size());
  std::string last;
  for (Clause& clause : clauses) {
    if (out.empty() || Order(out.back()) != Order(clause)) {
      last = clause.note;
      out.push_back(std::move(clause));
    } else if (clause.note != last) {
      last = clause.note;
      out.back().note += ", " + clause.note;
    }
  }
  clauses = std::move(out);
}

bool ClauseBuilder::DependsOnPod(const Policy& policy, Direction direction) {
  if (direction == Direction::kEgress) return false;
  return std::any_of(policy.ingress.begin(), policy.ingress.end(),
                     [](const Rule& rule) { return !NamesOf(rule).empty(); });
}

void ClauseBuilder::Add(const Policy& policy, const Pod& pod, Direction direction, std::vector<Clause>& out) {
  bool ingress = direction == Direction::kIngress;
  size_t number = 0;
  for (const Rule& rule : ingress ? policy.ingress : policy.egress) {
    std::string note =
        policy.ns + "/" + policy.name + (ingress ? " ingress[" : " egress[") + std::to_string(number++) + "]";
    AddRule(policy, rule, pod, direction, std::move(note), out);
  }
}

void ClauseBuilder::Add(const ClusterPolicy& policy, size_t number, const Pod& pod, Direction direction,
                        std::vector<Clause>& out) {
  const bool ingress = direction == Direction::kIngress;
  const TierRule& rule = policy.Rules(direction)[number];
  std::string note = policy.name + (ingress ? " ingress[" : " egress[") + std::to_string(number) + "]";
  if (!rule.name.empty()) note += " " + rule.name;
  const size_t first = out.size();
  AddRule({.ns = {}, .name = {}, .pods = {}}, {.peers = rule.peers, .ports = rule.ports}, pod, direction,
          std::move(note), out);
  for (size_t i = first; i < out.size(); ++i) {
    switch (rule.action) {
      case TierRule::Action::kAccept:
        out[i].action = Clause::Action::kReturn;
        break;
      case TierRule::Action::kDeny:
        out[i].action = Clause::Action::kDrop;
        break;
      case TierRule::Action::kPass:
        out[i].action = Clause::Action::kNextChain;
        break;
    }
  }
}

void ClauseBuilder::AddRule(const Policy& policy, const Rule& rule, const Pod& pod, Direction direction,
                            std::string note, std::vector<Clause>& out) {
  bool ingress = direction == Direction::kIngress;
  std::vector<PortRange> ranges = PortsOf(rule, ingress ? &pod : nullptr);
  std::vector<Port> names = ingress ? std::vector<Port>() : NamesOf(rule);
  bool any_port = rule.ports.empty();
  if (any_port || !ranges.empty()) {
    SetRef ports = any_port ? SetRef() : sets_.Ports(ranges);
    if (rule.peers.empty()) out.push_back({.ports = ports, .note = note});
    std::vector<IpRange> addresses;
    for (const Peer& peer : rule.peers) {
      if (!peer.domain.empty()) {
        out.push_back(
            {.peers = sets_.Domain(peer.domain), .ports = ports, .note = note + " to " + peer.domain});
      } else if (peer.nodes) {
        out.push_back({.peers = sets_.Nodes(*peer.nodes), .ports = ports, .note = note});
      } else if (!peer.block) {
        out.push_back({.peers = sets_.Pods(policy.ns, peer), .ports = ports, .note = note});
      } else if (peer.block->cidr.is_v4() == sets_.v4()) {
        for (IpRange& range : AddressesOf(*peer.block)) addresses.push_back(std::move(range));
      }
    }
    if (!addresses.empty()) {
      out.push_back({.peers = sets_.Blocks(std::move(addresses), ranges),
                     .form = ranges.empty() ? Clause::Form::kBlocks : Clause::Form::kBlocksAndPorts,
                     .note = note});
    }
  }
  if (names.empty()) return;
  // A name means something on pods only, in a block those with addresses inside.
  std::vector<Peer> peers = rule.peers;
  if (peers.empty()) peers.push_back({.pods = Selector(), .namespaces = Selector()});
  for (const Peer& peer : peers) {
    if (!peer.domain.empty() || peer.nodes) continue;
    if (peer.block && peer.block->cidr.is_v4() != sets_.v4()) continue;
    out.push_back(
        {.peers = sets_.NamedPorts(policy.ns, peer, names), .form = Clause::Form::kNamedPorts, .note = note});
  }
}

}  // namespace keelson::cni::policy
