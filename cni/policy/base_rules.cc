#include "cni/policy/base_rules.h"

#include <optional>

#include "cni/policy/chains.h"
#include "lib/dataplane/policy_sets.h"

namespace keelson::cni::policy {
namespace {

constexpr int kFilterPriority = 0;  // NF_IP_PRI_FILTER: after every translation of destinations
constexpr uint32_t kEstablished = 2, kRelated = 4;
constexpr uint32_t kLocalAddress = 2;  // RTN_LOCAL

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
      nft::Rule own(name);
      own.Load(0, nft::Field::kSaddrType).Equal(0, nft::Key().Mark(kLocalAddress).bytes()).Finish(kReturn);
      rules.push_back(std::move(own));
    }
    for (bool v4 : {true, false}) {
      nft::Rule enter(name);
      enter.Load(0, nft::Field::kNfProto).Equal(0, std::string(1, v4 ? '\x02' : '\x0a'));
      rules.push_back(std::move(enter.Finish(nft::Goto(PacketsChain(v4)))));
    }
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
      std::string zero(cidr.address().bytes().size(), '\0'), ones(zero.size(), '\xff');
      std::string mask(IpPrefix(IpAddress::FromBytes(ones), cidr.length()).Network().bytes());
      unknown.Load(0, side).Load(4, side).Mask(4, mask, zero).Equal(4, std::string(cidr.Network().bytes()));
      unknown.NotInSet(0, dataplane::ReadyPods(v4).name).Counter().Finish(kDrop).SetNote("not ready");
      rules.push_back(std::move(unknown));
    }
  }
  nft::Rule known(chain);
  rules.push_back(std::move(known.AnyBit(nft::Field::kCtState, kEstablished | kRelated).Finish(kReturn)));
  nft::Rule self(chain);
  self.Load(0, source).Load(v4 ? 1 : 4, destination).InSet(0, SelfSet(v4).name).Finish(kReturn);
  rules.push_back(std::move(self));
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

nft::Set SelfSet(bool v4) {
  nft::Type type = v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr;
  return {.name = v4 ? "self4" : "self6", .key = {type, type}};
}

nft::Set VerdictsSet(Direction direction, bool v4) {
  return {.name = VerdictsName(direction, v4),
          .key = {v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr},
          .verdicts = true};
}

nft::Ruleset BaseRules(const Node& node) {
  nft::Ruleset out{.table = dataplane::PolicyTable()};
  AddHooks(out);
  for (bool v4 : {true, false}) AddFamily(out, node, v4);
  return out;
}

}  // namespace keelson::cni::policy
