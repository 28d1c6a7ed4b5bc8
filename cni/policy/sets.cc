#include "cni/policy/sets.h"

#include <algorithm>

#include "lib/crypto/digest.h"
#include "lib/dataplane/domain_sets.h"

namespace keelson::cni::policy {
namespace {

using nft::Type;

std::string Describe(const std::vector<PortRange>& ranges) {
  std::string out;
  for (const PortRange& range : ranges) {
    out += std::to_string(range.protocol) + ":" + std::to_string(range.first) + "-" +
           std::to_string(range.last) + ";";
  }
  return out;
}

std::string Describe(const std::string& ns, const Peer& peer) {
  if (peer.block) {
    std::string out = "block " + peer.block->cidr.ToString();
    for (const IpPrefix& except : peer.block->except) out += "," + except.ToString();
    return out;
  }
  std::string out = peer.namespaces ? "all/" + peer.namespaces->Text() : "in " + ns;
  return out + "/" + (peer.pods ? peer.pods->Text() : "");
}

Type AddressType(bool v4) { return v4 ? Type::kIpv4Addr : Type::kIpv6Addr; }

}  // namespace

bool Picks(const SetSpec& spec, const Pod& pod, const Labels* namespace_labels) {
  if (!spec.of_pods) return false;
  if (!spec.peer.namespaces) {
    if (pod.ns != spec.ns) return false;
  } else if (!namespace_labels || !spec.peer.namespaces->Matches(*namespace_labels)) {
    return false;
  }
  return !spec.peer.pods || spec.peer.pods->Matches(pod.labels);
}

std::vector<std::string> KeysOf(const SetSpec& spec, const Pod& pod, const IpAddress& address) {
  if (address.is_v4() != spec.v4) return {};
  if (spec.names.empty()) return {nft::Key().Ip(address).bytes()};
  if (spec.peer.block && !Contains(*spec.peer.block, address)) return {};
  std::vector<std::string> out;
  for (const Port& port : spec.names) {
    for (const ContainerPort& own : pod.ports) {
      if (own.name != port.name || own.protocol != port.protocol) continue;
      out.push_back(nft::Key().Ip(address).Proto(own.protocol).Port(own.port).bytes());
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::set<std::string> KeysOf(const SetSpec& spec, const ClusterNodes& nodes) {
  std::set<std::string> out;
  for (const auto& [name, node] : nodes) {
    if (!spec.peer.nodes->Matches(node.labels)) continue;
    for (const IpAddress& address : node.addresses) {
      if (address.is_v4() == spec.v4) out.insert(nft::Key().Ip(address).bytes());
    }
  }
  return out;
}

template <typename Fill>
SetRef SetMaker::Make(const char* kind, const std::string& description, Fill fill) {
  return MakeNamed(std::string(kind) + (v4_ ? "4-" : "6-") + crypto::Sha256Hex(description).substr(0, 24),
                   fill);
}

template <typename Fill>
SetRef SetMaker::MakeNamed(std::string name, Fill fill) {
  std::weak_ptr<const SetSpec>& known = known_[name];
  if (SetRef there = known.lock()) return there;
  auto made = std::make_shared<SetSpec>();
  made->set.name = std::move(name);
  made->v4 = v4_;
  fill(*made);
  known = made;
  Prune();
  return made;
}

// Descriptions that are no longer in use take memory until half of the known ones are such.
void SetMaker::Prune() {
  if (known_.size() < prune_at_) return;
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  prune_at_ = 2 * known_.size() + 64;
}

SetRef SetMaker::Ports(const std::vector<PortRange>& ranges) {
  // Addresses play no part, yet each family has its own sets: what one refers to the other never deletes.
  return Make("ports", Describe(ranges), [&](SetSpec& spec) {
    spec.set.key = {Type::kInetProto, Type::kInetService};
    spec.set.interval = true;
    for (const PortRange& range : ranges) {
      spec.fixed.push_back({.key = nft::Key().Proto(range.protocol).Port(range.first).bytes(),
                            .key_end = nft::Key().Proto(range.protocol).Port(range.last).bytes()});
    }
  });
}

SetRef SetMaker::Pods(const std::string& ns, const Peer& peer) {
  return Make("pods", Describe(ns, peer), [&](SetSpec& spec) {
    spec.set.key = {AddressType(v4_)};
    spec.of_pods = true;
    spec.ns = ns;
    spec.peer = peer;
  });
}

SetRef SetMaker::NamedPorts(const std::string& ns, const Peer& peer, const std::vector<Port>& names) {
  std::string description = Describe(ns, peer) + "|";
  for (const Port& port : names) description += std::to_string(port.protocol) + ":" + port.name + ";";
  return Make("named", description, [&](SetSpec& spec) {
    spec.set.key = {AddressType(v4_), Type::kInetProto, Type::kInetService};
    spec.of_pods = true;
    spec.ns = ns;
    spec.peer = peer;
    if (peer.block) spec.peer.pods = spec.peer.namespaces = Selector();
    spec.names = names;
  });
}

SetRef SetMaker::Blocks(std::vector<IpRange> addresses, const std::vector<PortRange>& ports) {
  addresses = Merged(std::move(addresses));
  std::string description = Describe(ports) + "|";
  for (const IpRange& range : addresses) {
    description += range.first.ToString() + "-" + range.last.ToString() + ";";
  }
  return Make("blocks", description, [&](SetSpec& spec) {
    spec.set.key = {AddressType(v4_), Type::kInetProto};
    if (!ports.empty()) spec.set.key.push_back(Type::kInetService);
    spec.set.interval = true;
    auto add = [&](const nft::Key& first, const nft::Key& last) {
      spec.fixed.push_back({.key = first.bytes(), .key_end = last.bytes()});
    };
    for (const IpRange& range : addresses) {
      if (ports.empty()) add(nft::Key().Ip(range.first).Proto(0), nft::Key().Ip(range.last).Proto(255));
      for (const PortRange& port : ports) {
        add(nft::Key().Ip(range.first).Proto(port.protocol).Port(port.first),
            nft::Key().Ip(range.last).Proto(port.protocol).Port(port.last));
      }
    }
  });
}

SetRef SetMaker::Nodes(const Selector& nodes) {
  return Make("nodes", nodes.Text(), [&](SetSpec& spec) {
    spec.set.key = {AddressType(v4_)};
    spec.of_nodes = true;
    spec.peer.nodes = nodes;
  });
}

SetRef SetMaker::Domain(const std::string& pattern) {
  nft::Set set = dataplane::DomainAddresses(pattern, v4_);
  std::string name = set.name;
  return MakeNamed(std::move(name), [&](SetSpec& spec) { spec.set = std::move(set); });
}

}  // namespace keelson::cni::policy
