#include "proxy/nftables/chains.h"

#include <array>

namespace keelson::proxy::nftables {
namespace {

using nft::Field;
using nft::Rule;
using nft::Type;

constexpr uint32_t kCtStateNew = 8;       // NF_CT_STATE_BIT(IP_CT_NEW)
constexpr uint32_t kCtStatusDnat = 0x20;  // IPS_DST_NAT
constexpr int kBeforeDnat = -110;
constexpr int kDnat = -100;  // NF_IP_PRI_NAT_DST
constexpr int kAfterDnat = -90;
constexpr int kSnat = 100;  // NF_IP_PRI_NAT_SRC
// Elements of the affinity sets carry their Service's timeout; this is what the set's declaration needs.
constexpr std::chrono::milliseconds kSetTimeout = std::chrono::hours(3);

std::array<nft::Set, kSetCount> MakeSets(bool v4) {
  Type ip = v4 ? Type::kIpv4Addr : Type::kIpv6Addr;
  std::vector<Type> vip = {ip, Type::kInetProto, Type::kInetService};
  std::vector<Type> node_port = {Type::kInetProto, Type::kInetService};
  auto with = [](std::vector<Type> types, std::vector<Type> more) {
    types.insert(types.end(), more.begin(), more.end());
    return types;
  };
  std::vector<Type> backend = {ip, Type::kInetService};
  std::array<nft::Set, kSetCount> sets;
  sets[kServices] = {.name = "services", .key = vip};
  sets[kEndpoints] = {.name = "endpoints", .key = with(vip, {Type::kMark}), .data = backend};
  sets[kNodePorts] = {.name = "nodeports", .key = node_port};
  sets[kNodePortEndpoints] = {
      .name = "nodeport-endpoints", .key = with(node_port, {Type::kMark}), .data = backend};
  sets[kNodePortIps] = {.name = "nodeport-ips", .key = {ip}};
  sets[kClusterIps] = {.name = "cluster-ips", .key = {ip}};
  sets[kRejectServices] = {.name = "reject-services", .key = vip};
  sets[kDropServices] = {.name = "drop-services", .key = vip};
  sets[kRejectNodePorts] = {.name = "reject-nodeports", .key = node_port};
  sets[kDropNodePorts] = {.name = "drop-nodeports", .key = node_port};
  sets[kHairpin] = {.name = "hairpin", .key = {ip, ip}};
  sets[kLocalEndpoints] = {.name = "local-endpoints", .key = {ip}};
  sets[kLimited] = {.name = "limited", .key = vip};
  sets[kSourceRanges] = {.name = "source-ranges", .key = with(vip, {ip}), .interval = true};
  sets[kAffinity] = {.name = "affinity",
                     .key = with({ip}, with(vip, {Type::kMark})),
                     .dynamic = true,
                     .timeout = kSetTimeout};
  sets[kNodePortAffinity] = {.name = "nodeport-affinity",
                             .key = with({ip}, with(node_port, {Type::kMark})),
                             .dynamic = true,
                             .timeout = kSetTimeout};
  return sets;
}

std::string MaskBytes(const IpPrefix& prefix) {
  std::string ones(prefix.address().bytes().size(), '\xff');
  return std::string(IpPrefix(IpAddress::FromBytes(ones), prefix.length()).Network().bytes());
}

// Builds rules of one family: which registers an address takes and what the fields are called.
class Builder {
 public:
  explicit Builder(const Options& options) : options_(options), width_(options.v4 ? 1 : 4) {}

  Field Source() const { return options_.v4 ? Field::kIpSaddr : Field::kIp6Saddr; }
  Field Destination() const { return options_.v4 ? Field::kIpDaddr : Field::kIp6Daddr; }
  int width() const { return width_; }

  // Destination key from register `at` on; the register after it.
  int LoadVip(Rule& rule, int at) const {
    rule.Load(at, Destination())
        .Load(at + width_, Field::kL4Proto)
        .Load(at + width_ + 1, Field::kDestinationPort);
    return at + width_ + 2;
  }
  int LoadNodePort(Rule& rule, int at) const {
    rule.Load(at, Field::kL4Proto).Load(at + 1, Field::kDestinationPort);
    return at + 2;
  }
  void SourceInside(Rule& rule, const IpPrefix& cidr, bool inside) const {
    std::string zero(cidr.address().bytes().size(), '\0');
    rule.Load(0, Source()).Mask(0, MaskBytes(cidr), zero);
    inside ? rule.Equal(0, std::string(cidr.Network().bytes()))
           : rule.NotEqual(0, std::string(cidr.Network().bytes()));
  }
  std::string Name(SetId id) const { return SetOf(id, options_.v4).name; }

 private:
  const Options& options_;
  int width_;
};

// Writes the rules of one pick chain.
class PickWriter {
 public:
  PickWriter(const PickSpec& spec, const Options& options)
      : spec_(spec), options_(options), build_(options), chain_(spec.ChainName()) {}

  std::vector<Rule> Run() {
    switch (spec_.kind) {
      case PickSpec::Kind::kCluster:
        MarkForeign();
        Pick(Rule(chain_), spec_.cluster, 0);
        break;
      case PickSpec::Kind::kExternal:
        Mark(Rule(chain_));
        Pick(Rule(chain_), spec_.cluster, 0);
        break;
      case PickSpec::Kind::kExternalLocal:
        External();
        break;
    }
    return std::move(rules_);
  }

 private:
  void Mark(Rule rule) { rules_.push_back(rule.MarkBits(options_.masquerade_bit)); }

  // What comes to a cluster IP from outside the pods must find its way back through this node.
  void MarkForeign() {
    if (options_.masquerade_all) {
      Mark(Rule(chain_));
    } else if (!options_.pod_cidrs.empty()) {
      Rule rule(chain_);
      for (const IpPrefix& cidr : options_.pod_cidrs) build_.SourceInside(rule, cidr, false);
      Mark(rule);
    }
  }

  // externalTrafficPolicy Local: pods and the node itself may use every endpoint, others those of this node.
  void External() {
    if (spec_.cluster > 0) {
      for (const IpPrefix& cidr : options_.pod_cidrs) {
        Rule rule(chain_);
        build_.SourceInside(rule, cidr, true);
        Pick(rule, spec_.cluster, 0);
      }
      Rule from_node(chain_);
      from_node.Load(0, Field::kSaddrType).Equal(0, nft::Key().Mark(2).bytes());  // RTN_LOCAL
      Mark(from_node);
      Rule marked(chain_);
      Pick(marked.AnyBit(Field::kMark, options_.masquerade_bit), spec_.cluster, 0);
    }
    if (spec_.local > 0) Pick(Rule(chain_), spec_.local, kLocalSlots);
  }

  void Pick(const Rule& prefix, uint32_t count, uint32_t first_slot) {
    nft::Family family = options_.Table().family;
    SetId endpoints = spec_.node_port ? kNodePortEndpoints : kEndpoints;
    int width = build_.width();
    if (spec_.affinity.count() == 0) {
      Rule rule = prefix;
      int slot = LoadKey(rule, 0);
      rule.Random(slot, count, first_slot).Map(0, build_.Name(endpoints), 0).Dnat(family, 0, width);
      rules_.push_back(rule);
      return;
    }
    // client . destination . slot: the client's slot of last time if it is still filled ...
    std::string affinity = build_.Name(spec_.node_port ? kNodePortAffinity : kAffinity);
    auto finish = [&](Rule& rule, int slot) {
      rule.Map(width, build_.Name(endpoints), slot + 1).Update(0, affinity, spec_.affinity);
      rules_.push_back(rule.Dnat(family, slot + 1, slot + 1 + width));
    };
    for (uint32_t i = 0; i < count; ++i) {
      Rule again = prefix;
      int slot = LoadKey(again.Load(0, build_.Source()), width);
      finish(again.Immediate(slot, nft::Key().Mark(first_slot + i).bytes()).InSet(0, affinity), slot);
    }
    // ... else a new one.
    Rule fresh = prefix;
    int slot = LoadKey(fresh.Load(0, build_.Source()), width);
    finish(fresh.Random(slot, count, first_slot), slot);
  }

  int LoadKey(Rule& rule, int at) const {
    return spec_.node_port ? build_.LoadNodePort(rule, at) : build_.LoadVip(rule, at);
  }

  const PickSpec& spec_;
  const Options& options_;
  Builder build_;
  std::string chain_;
  std::vector<Rule> rules_;
};

class FixedWriter {
 public:
  explicit FixedWriter(const Options& options) : options_(options), build_(options) {}

  nft::Ruleset Run() {
    out_.table = options_.Table();
    for (int id = 0; id < kSetCount; ++id) {
      const nft::Set& set = SetOf(static_cast<SetId>(id), options_.v4);
      out_.sets[set.name].set = set;
    }
    Base("nat-prerouting", nft::HookType::kNat, nft::HookPoint::kPrerouting, kDnat);
    Base("nat-output", nft::HookType::kNat, nft::HookPoint::kOutput, kDnat);
    Base("nat-postrouting", nft::HookType::kNat, nft::HookPoint::kPostrouting, kSnat);
    Base("filter-prerouting", nft::HookType::kFilter, nft::HookPoint::kPrerouting, kBeforeDnat);
    Base("filter-input", nft::HookType::kFilter, nft::HookPoint::kInput, kBeforeDnat);
    Base("filter-forward", nft::HookType::kFilter, nft::HookPoint::kForward, kBeforeDnat);
    Base("filter-output", nft::HookType::kFilter, nft::HookPoint::kOutput, kAfterDnat);
    for (const char* name : {"services", "dispatch", "dispatch-nodeports", "filter", "reject"})
      out_.chains[name].chain.name = name;
    for (const char* name : {"nat-prerouting", "nat-output"}) Add(Rule(name).Finish(nft::Jump("services")));
    for (const char* name : {"filter-input", "filter-forward", "filter-output"}) {
      Add(Rule(name).AnyBit(Field::kCtState, kCtStateNew).Finish(nft::Jump("filter")));
    }
    Services();
    Filter();
    SourceRanges();
    Postrouting();
    return std::move(out_);
  }

 private:
  void Base(const std::string& name, nft::HookType type, nft::HookPoint point, int priority) {
    out_.chains[name].chain = {.name = name, .hook = nft::Hook{type, point, priority}};
  }
  void Add(const Rule& rule) { out_.chains[rule.chain()].rules.push_back(rule); }
  Rule ToNode(const char* chain) const {
    Rule rule(chain);
    return rule.Load(0, build_.Destination()).InSet(0, build_.Name(kNodePortIps));
  }

  void Services() {
    Rule vip("services");
    build_.LoadVip(vip, 0);
    Add(vip.InSet(0, build_.Name(kServices)).Finish(nft::Goto(DispatchChain(false))));
    Rule node_port = ToNode("services");
    build_.LoadNodePort(node_port, 0);
    Add(node_port.InSet(0, build_.Name(kNodePorts)).Finish(nft::Goto(DispatchChain(true))));
  }

  void Filter() {
    auto vip = [&](SetId set, nft::Verdict verdict) {
      Rule rule("filter");
      build_.LoadVip(rule, 0);
      Add(rule.InSet(0, build_.Name(set)).Finish(std::move(verdict)));
    };
    auto node_port = [&](SetId set, nft::Verdict verdict) {
      Rule rule = ToNode("filter");
      build_.LoadNodePort(rule, 0);
      Add(rule.InSet(0, build_.Name(set)).Finish(std::move(verdict)));
    };
    nft::Verdict drop{nft::Verdict::Kind::kDrop};
    vip(kRejectServices, nft::Goto("reject"));
    vip(kDropServices, drop);
    node_port(kRejectNodePorts, nft::Goto("reject"));
    node_port(kDropNodePorts, drop);
    Rule other_port("filter");
    Add(other_port.Load(0, build_.Destination())
            .InSet(0, build_.Name(kClusterIps))
            .Finish(nft::Goto("reject")));
    Rule tcp("reject");
    Add(tcp.Load(0, Field::kL4Proto).Equal(0, nft::Key().Proto(6).bytes()).RejectTcpReset());
    Add(Rule("reject").RejectUnreachable());
  }

  void SourceRanges() {
    Rule rule("filter-prerouting");
    rule.AnyBit(Field::kCtState, kCtStateNew);
    int next = build_.LoadVip(rule, 0);
    rule.InSet(0, build_.Name(kLimited)).Load(next, build_.Source()).NotInSet(0, build_.Name(kSourceRanges));
    Add(rule.Finish({nft::Verdict::Kind::kDrop}));
  }

  void Postrouting() {
    Rule marked("nat-postrouting");
    marked.AnyBit(Field::kMark, options_.masquerade_bit).UnmarkBits(options_.masquerade_bit);
    Add(marked.Masquerade());
    // A pod that reaches itself through a Service would answer itself directly.
    Rule hairpin("nat-postrouting");
    hairpin.AnyBit(Field::kCtStatus, kCtStatusDnat)
        .Load(0, build_.Source())
        .Load(build_.width(), build_.Destination());
    Add(hairpin.InSet(0, build_.Name(kHairpin)).Masquerade());
    if (!options_.replies_bypass_node) return;
    for (const IpPrefix& cidr : options_.pod_cidrs) {
      Rule same_node("nat-postrouting");
      same_node.AnyBit(Field::kCtStatus, kCtStatusDnat).Load(0, build_.Destination());
      same_node.InSet(0, build_.Name(kLocalEndpoints));
      build_.SourceInside(same_node, cidr, true);
      Add(same_node.Masquerade());
    }
  }

  const Options& options_;
  Builder build_;
  nft::Ruleset out_;
};

}  // namespace

const nft::Set& SetOf(SetId id, bool v4) {
  static const auto kV4 = MakeSets(true), kV6 = MakeSets(false);
  return (v4 ? kV4 : kV6)[id];
}

std::string PickSpec::ChainName() const {
  std::string out = node_port ? "nodeport-" : "pick-";
  if (kind == Kind::kExternal && !node_port) out += "external-";
  if (kind == Kind::kExternalLocal) out += "local-";
  out += std::to_string(cluster);
  if (kind == Kind::kExternalLocal) out += "-" + std::to_string(local);
  if (affinity.count() > 0) out += "-sticky-" + std::to_string(affinity.count());
  return out;
}

nft::Set UseSet(const PickSpec& spec, bool v4) {
  return {.name = "use-" + spec.ChainName(), .key = SetOf(spec.node_port ? kNodePorts : kServices, v4).key};
}

const char* DispatchChain(bool node_port) { return node_port ? "dispatch-nodeports" : "dispatch"; }

std::vector<nft::Rule> DispatchRules(bool node_port, const std::vector<PickSpec>& specs,
                                     const Options& options) {
  Builder build(options);
  std::vector<nft::Rule> out;
  for (const PickSpec& spec : specs) {
    Rule rule(DispatchChain(node_port));
    node_port ? build.LoadNodePort(rule, 0) : build.LoadVip(rule, 0);
    out.push_back(rule.InSet(0, UseSet(spec, options.v4).name).Finish(nft::Goto(spec.ChainName())));
  }
  return out;
}

std::vector<nft::Rule> PickRules(const PickSpec& spec, const Options& options) {
  return PickWriter(spec, options).Run();
}

nft::Ruleset FixedRuleset(const Options& options) { return FixedWriter(options).Run(); }

}  // namespace keelson::proxy::nftables
