#include "cni/policy/plan.h"

#include <cstring>

#include "lib/crypto/digest.h"
#include "lib/dataplane/policy_sets.h"

namespace keelson::cni::policy {
namespace {

constexpr int kFilterPriority = 0;  // NF_IP_PRI_FILTER: after every translation of destinations
constexpr uint32_t kEstablished = 2, kRelated = 4;
constexpr int kPortKey = 8;            // register: behind an IPv6 address and everything that follows it
constexpr uint32_t kLocalAddress = 2;  // RTN_LOCAL

const nft::Verdict kReturn = {nft::Verdict::Kind::kReturn};
const nft::Verdict kDrop = {nft::Verdict::Kind::kDrop};

class Planner {
 public:
  Planner(const Cluster& cluster, const Node& node, const Attachments& attachments)
      : cluster_(cluster), node_(node), attachments_(attachments), members_(cluster, node.name, attachments) {
    plan_.rules.table = dataplane::PolicyTable();
  }

  Plan Run() {
    AddHooks();
    for (bool v4 : {true, false}) {
      AddFamily(v4);
      AddPods(v4);
    }
    return std::move(plan_);
  }

 private:
  static std::string Named(const char* base, bool v4) { return std::string(base) + (v4 ? "4" : "6"); }

  std::vector<nft::Rule>& NewChain(const std::string& name, std::optional<nft::Hook> hook = {}) {
    auto& contents = plan_.rules.chains[name];
    contents.chain = {name, hook};
    return contents.rules;
  }
  nft::Ruleset::SetContents& SetFor(const nft::Set& set) {
    auto& contents = plan_.rules.sets[set.name];
    contents.set = set;
    return contents;
  }
  static nft::Set VerdictsSet(const char* base, bool v4) {
    return {
        .name = Named(base, v4), .key = {v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr}, .verdicts = true};
  }

  void AddHooks() {
    for (auto [name, point] :
         {std::pair("forward", nft::HookPoint::kForward), std::pair("output", nft::HookPoint::kOutput)}) {
      auto& rules = NewChain(name, nft::Hook{nft::HookType::kFilter, point, kFilterPriority});
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
        rules.push_back(std::move(enter.Finish(nft::Goto(Named("packets", v4)))));
      }
    }
  }

  static nft::Field Source(bool v4) { return v4 ? nft::Field::kIpSaddr : nft::Field::kIp6Saddr; }
  static nft::Field Destination(bool v4) { return v4 ? nft::Field::kIpDaddr : nft::Field::kIp6Daddr; }

  void AddFamily(bool v4) {
    const std::string chain = Named("packets", v4);
    auto& rules = NewChain(chain);
    for (nft::Field side : {Source(v4), Destination(v4)}) {
      for (const IpPrefix& cidr : node_.pod_cidrs) {
        if (cidr.is_v4() != v4) continue;
        nft::Rule unknown(chain);
        std::string zero(cidr.address().bytes().size(), '\0'), ones(zero.size(), '\xff');
        std::string mask(IpPrefix(IpAddress::FromBytes(ones), cidr.length()).Network().bytes());
        unknown.Load(0, side).Load(4, side).Mask(4, mask, zero).Equal(4, std::string(cidr.Network().bytes()));
        unknown.NotInSet(0, dataplane::ReadyPods(v4).name).Counter().Finish(kDrop);
        rules.push_back(std::move(unknown));
      }
    }
    nft::Rule known(chain);
    rules.push_back(std::move(known.AnyBit(nft::Field::kCtState, kEstablished | kRelated).Finish(kReturn)));
    nft::Rule self(chain);
    self.Load(0, Source(v4)).Load(v4 ? 1 : 4, Destination(v4)).InSet(0, Self(v4).name).Finish(kReturn);
    rules.push_back(std::move(self));
    nft::Rule egress(chain), ingress(chain);
    rules.push_back(std::move(egress.Load(0, Source(v4)).VerdictMap(0, Named("egress", v4))));
    rules.push_back(std::move(ingress.Load(0, Destination(v4)).VerdictMap(0, Named("ingress", v4))));
    SetFor(dataplane::ReadyPods(v4));
    SetFor(Self(v4));
    SetFor(VerdictsSet("egress", v4));
    SetFor(VerdictsSet("ingress", v4));
    auto& attached = SetFor(dataplane::AttachedPods(v4)).elements;
    for (const auto& [address, attachment] : attachments_) {
      if (address.is_v4() != v4) continue;
      nft::Element element = ElementOf(address, attachment);
      std::string key = element.key;
      attached.emplace(std::move(key), std::move(element));
    }
  }

  static nft::Set Self(bool v4) {
    nft::Type type = v4 ? nft::Type::kIpv4Addr : nft::Type::kIpv6Addr;
    return {.name = Named("self", v4), .key = {type, type}};
  }

  void AddPods(bool v4) {
    Sets sets;
    ClauseBuilder builder(cluster_, members_, v4, sets);
    for (const auto& [address, pod] : members_.Attached()) {
      if (address.is_v4() != v4) continue;
      std::string key = nft::Key().Ip(address).bytes();
      plan_.rules.sets[dataplane::ReadyPods(v4).name].elements[key] = {.key = key};
      plan_.ready.emplace(address, attachments_.at(address));
      bool isolated = false;
      for (Direction direction : {Direction::kEgress, Direction::kIngress}) {
        std::optional<std::vector<Clause>> clauses = builder.Of(*pod, direction);
        if (!clauses) continue;
        isolated = true;
        std::string base = Named(direction == Direction::kEgress ? "egress" : "ingress", v4);
        plan_.rules.sets[base].elements[key] = {
            .key = key, .verdict = nft::Jump(ChainFor(base, *clauses, direction, v4))};
      }
      if (!isolated) continue;
      ++plan_.isolated;
      std::string pair = nft::Key().Ip(address).Ip(address).bytes();
      plan_.rules.sets[Self(v4).name].elements[pair] = {.key = pair};
    }
    for (auto& [name, contents] : sets) plan_.rules.sets[name] = std::move(contents);
  }

  std::string ChainFor(const std::string& base, const std::vector<Clause>& clauses, Direction direction,
                       bool v4) {
    std::string description;
    for (const Clause& clause : clauses) description += clause.peers + " " + clause.ports + ";";
    std::string name = base + "-" + crypto::Sha256Hex(description).substr(0, 24);
    if (plan_.rules.chains.contains(name)) return name;
    auto& rules = NewChain(name);
    nft::Field other = direction == Direction::kIngress ? Source(v4) : Destination(v4);
    for (const Clause& clause : clauses) rules.push_back(RuleFor(name, clause, other, v4));
    nft::Rule rest(name);
    rules.push_back(std::move(rest.Counter().Finish(kDrop)));
    return name;
  }

  static nft::Rule RuleFor(const std::string& chain, const Clause& clause, nft::Field other, bool v4) {
    nft::Rule rule(chain);
    if (!clause.peers.empty()) {
      int next = v4 ? 1 : 4;
      rule.Load(0, other);
      if (clause.form != Clause::Form::kAddresses) rule.Load(next++, nft::Field::kL4Proto);
      bool with_port =
          clause.form == Clause::Form::kBlocksAndPorts || clause.form == Clause::Form::kNamedPorts;
      if (with_port) rule.Load(next, nft::Field::kDestinationPort);
      rule.InSet(0, clause.peers);
    }
    if (!clause.ports.empty()) {
      rule.Load(kPortKey, nft::Field::kL4Proto).Load(kPortKey + 1, nft::Field::kDestinationPort);
      rule.InSet(kPortKey, clause.ports);
    }
    return std::move(rule.Finish(kReturn));
  }

  const Cluster& cluster_;
  const Node& node_;
  const Attachments& attachments_;
  const Members members_;
  Plan plan_;
};

}  // namespace

Plan MakePlan(const Cluster& cluster, const Node& node, const Attachments& attachments) {
  return Planner(cluster, node, attachments).Run();
}

Attachments AttachmentsOf(const nft::Ruleset& found) {
  Attachments out;
  for (bool v4 : {true, false}) {
    auto set = found.sets.find(dataplane::AttachedPods(v4).name);
    if (set == found.sets.end() || !(set->second.set == dataplane::AttachedPods(v4))) continue;
    for (const auto& [key, element] : set->second.elements) {
      if (key.size() != (v4 ? 4u : 16u) || element.data.size() != sizeof(uint32_t)) continue;
      Attachment attachment{.uid = element.comment};
      std::memcpy(&attachment.epoch, element.data.data(), sizeof attachment.epoch);
      out.emplace(IpAddress::FromBytes(key), std::move(attachment));
    }
  }
  return out;
}

nft::Element ElementOf(const IpAddress& address, const Attachment& attachment) {
  return {.key = nft::Key().Ip(address).bytes(),
          .data = nft::Key().Mark(attachment.epoch).bytes(),
          .comment = attachment.uid};
}

}  // namespace keelson::cni::policy
