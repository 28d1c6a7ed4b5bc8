#include "cni/policy/base_rules.h"

#include <optional>

#include "cni/policy/chains.h"
#include "lib/dataplane/policy_sets.h"

namespace keelson::cni::policy {
namespace {

constexpr int kFilterPriority = 0;  // NF_IP_PRI_FILTER: after every translation of destinations
// Behind IPVS (NF_IP_PRI_NAT_SRC - 2), which takes packets to Services away: they never arrive at the node itself.
constexpr int kInputPriority = 101;
constexpr uint32_t kEstablished = 2, kRelated = 4;
// RTN_LOCAL, and RTN_ANYCAST: an IPv6 address that ends in zeros, as that of the VXLAN device, is its subnet's anycast address.
constexpr uint32_t kOwnAddresses[] = {2, 4};

const nft::Verdict kReturn = {nft::Verdict::Kind::kReturn};
const nft::Verdict kDrop = {nft::Verdict::Kind::kDrop};

std::string PacketsChain(bool v4) { return v4 ? "packets4" : "packets6"; }

std::vector<nft::Rule>& NewChain(nft::Ruleset& out, const std::string& name,
                                 std::optional<nft::Hook> hook = {}) {
  auto& contents = out.chains[name];
  contents.chain = {name, hook};
  return contents.rules;
}

void AddHooks(nft::Ruleset& out) {
  for (auto [name, point] :
       {std::pair("forward", nft::HookPoint::kForward), std::pair("output", nft::HookPoint::kOutput)}) {
    auto& rules = NewChain(out, name, nft::Hook{nft::HookType::kFilter, point, kFilterPriority});
    if (point == nft::HookPoint::kOutput) {
      nft::Rule known(name);
      known.AnyBit(nft::Field::kCtState, kEstablished | kRelated);
      rules.push_back(std::move(known.Finish(kReturn)));
      for (uint32_t type : kOwnAddresses) {
        nft::Rule own(name);
        own.Load(0, nft::Field::kSaddrType).Equal(0, nft::Key().Mark(type).bytes()).Finish(kReturn);
        rules.push_back(std::move(own));
      }
    }
    for (bool v4 : {true, false}) {
      nft::Rule enter(name);
      enter.Load(0, nft::Field::kNfProto).Equal(0, std::string(1, v4 ? '\x02' : '\x0a'));
      rules.push_back(std::move(enter.Finish(nft::Goto(PacketsChain(v4)))));
    }
  }
}

// Looks whether the address at `side` is in a pod CIDR of this node.
void InPodCidr(nft::Rule& rule, const IpPrefix& cidr, nft::Field side) {
  const std::string zero(cidr.address().bytes().size(), '\0'), ones(zero.size(), '\xff');
  const std::string mask(IpPrefix(IpAddress::FromBytes(ones), cidr.length()).Network().bytes());
  rule.Load(0, side).Load(4, side).Mask(4, mask, zero).Equal(4, std::string(cidr.Network().bytes()));
}

void DropUnlessReady(nft::Rule& rule, bool v4) {
  rule.NotInSet(0, dataplane::ReadyPods(v4).name).Counter().Finish(kDrop).SetNote("not ready");
}

// What pods send to their own node. Two lookups for it, one for what others send to these addresses.
void AddInput(nft::Ruleset& out, const Node& node) {
  const std::string chain = "input";
  auto& rules =
      NewChain(out, chain, nft::Hook{nft::HookType::kFilter, nft::HookPoint::kInput, kInputPriority});
  constexpr int kState = 8;
  const std::string known = nft::Key().Mark(kEstablished | kRelated).bytes(),
                    none = nft::Key().Mark(0).bytes();
  for (bool v4 : {true, false}) {
    const nft::Field source = v4 ? nft::Field::kIpSaddr : nft::Field::kIp6Saddr;
    // New connections to this node.
    auto begin = [&] {
      nft::Rule rule(chain);
      rule.Load(0, nft::Field::kNfProto).Equal(0, std::string(1, v4 ? '\x02' : '\x0a'));
      rule.Load(0, v4 ? nft::Field::kIpDaddr : nft::Field::kIp6Daddr).InSet(0, ThisNodeSet(v4).name);
      rule.Load(kState, nft::Field::kCtState).Mask(kState, known, none).Equal(kState, none);
      return rule;
    };
    for (const IpPrefix& cidr : node.pod_cidrs) {
      if (cidr.is_v4() != v4) continue;
      nft::Rule unknown = begin();
      InPodCidr(unknown, cidr, source);
      DropUnlessReady(unknown, v4);
      rules.push_back(std::move(unknown));
    }
    nft::Rule rule = begin();
    rule.Load(0, source).VerdictMap(0, ToThisNodeSet(v4).name);
    rules.push_back(std::move(rule));
    for (const nft::Set& set : {ThisNodeSet(v4), ToThisNodeSet(v4)}) out.sets[set.name].set = set;
  }
}

void AddFamily(nft::Ruleset& out, const Node& node, bool v4) {
  const nft::Field source = v4 ? nft::Field::kIpSaddr : nft::Field::kIp6Saddr;
  const nft::Field destination = v4 ? nft::Field::kIpDaddr : nft::Field::kIp6Daddr;
  const std::string chain = PacketsChain(v4);
  auto& rules = NewChain(out, chain);
  for (nft::Field side : {source, destination}) {
    for (const IpPrefix& cidr : node.pod_cidrs) {
      if (cidr.is_v4() != v4) continue;
      nft::Rule unknown(chain);
      InPodCidr(unknown, cidr, side);
      DropUnlessReady(unknown, v4);
      rules.push_back(std::move(unknown));
    }
  }
  nft::Rule known(chain);
  rules.push_back(std::move(known.AnyBit(nft::Field::kCtState, kEstablished | kRelated).Finish(kReturn)));
  nft::Rule egress(chain), ingress(chain);
  egress.Load(0, source).VerdictMap(0, VerdictsName(Direction::kEgress, v4));
  rules.push_back(std::move(egress));
  ingress.Load(0, destination).VerdictMap(0, VerdictsName(Direction::kIngress, v4));
  rules.push_back(std::move(ingress));
  for (const nft::Set& set : {dataplane::ReadyPods(v4), dataplane::AttachedPods(v4), SelfSet(v4),
                              VerdictsSet(Direction::kEgress, v4), VerdictsSet(Direction::kIngress, v4)}) {
    out.sets[set.name].set = set;
  }
}

}  // namespace

nft::Rule ToItself(const std::string& chain, bool v4) {
  nft::Rule rule(chain);
  rule.Load(0, v4 ? nft::Field::kIpSaddr : nft::Field::kIp6Saddr);
  rule.Load(v4 ? 1 : 4, v4 ? nft::Field::kIpDaddr : nft::Field::kIp6Daddr);
  rule.InSet(0, SelfSet(v4).name).Finish(kReturn);
  return rule;
}

nft::Set SelfSet(bool v4) {
  nft::Type type = v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr;
  return {.name = v4 ? "self4" : "self6", .key = {type, type}};
}

nft::Set VerdictsSet(Direction direction, bool v4) {
  return {.name = VerdictsName(direction, v4),
          .key = {v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr},
          .verdicts = true};
}

nft::Set ThisNodeSet(bool v4) {
  return {.name = v4 ? "node4" : "node6", .key = {v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr}};
}

nft::Set ToThisNodeSet(bool v4) {
  return {.name = v4 ? "to-node4" : "to-node6",
          .key = {v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr},
          .verdicts = true};
}

nft::Ruleset BaseRules(const Node& node) {
  nft::Ruleset out{.table = dataplane::PolicyTable()};
  AddHooks(out);
  AddInput(out, node);
  for (bool v4 : {true, false}) AddFamily(out, node, v4);
  return out;
}

}  // namespace keelson::cni::policy
