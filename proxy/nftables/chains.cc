#include "proxy/nftables/chains.h"

#include "proxy/nftables/rule_builder.h"

namespace keelson::proxy::nftables {
namespace {

constexpr uint32_t kCtStateNew = 8;       // NF_CT_STATE_BIT(IP_CT_NEW)
constexpr uint32_t kCtStatusDnat = 0x20;  // IPS_DST_NAT
constexpr int kBeforeDnat = -110;
constexpr int kDnat = -100;  // NF_IP_PRI_NAT_DST
constexpr int kAfterDnat = -90;
constexpr int kSnat = 100;  // NF_IP_PRI_NAT_SRC

class FixedWriter {
 public:
  explicit FixedWriter(const Options& options) : options_(options), build_(options) {}

  nft::Ruleset Run() {
    out_.table = options_.Table();
    for (int id = 0; id < kSetCount; ++id) {
      const nft::Set& set = SetOf(static_cast<SetId>(id), options_.v4);
      out_.sets[set.name].set = set;
    }
    Base(dataplane::kNatPreroutingChain, nft::HookType::kNat, nft::HookPoint::kPrerouting, kDnat);
    Base(dataplane::kNatOutputChain, nft::HookType::kNat, nft::HookPoint::kOutput, kDnat);
    Base(dataplane::kNatPostroutingChain, nft::HookType::kNat, nft::HookPoint::kPostrouting, kSnat);
    Base(dataplane::kFilterPreroutingChain, nft::HookType::kFilter, nft::HookPoint::kPrerouting, kBeforeDnat);
    Base(dataplane::kFilterInputChain, nft::HookType::kFilter, nft::HookPoint::kInput, kBeforeDnat);
    Base(dataplane::kFilterForwardChain, nft::HookType::kFilter, nft::HookPoint::kForward, kBeforeDnat);
    Base(dataplane::kFilterOutputChain, nft::HookType::kFilter, nft::HookPoint::kOutput, kBeforeDnat);
    Base(dataplane::kFilterOutputPostDnatChain, nft::HookType::kFilter, nft::HookPoint::kOutput, kAfterDnat);
    for (const char* name :
         {dataplane::kServicesChain, dataplane::kDispatchChain, dataplane::kDispatchNodePortsChain,
          dataplane::kFirewallChain, dataplane::kFilterChain, dataplane::kClusterIpsChain,
          dataplane::kServiceCidrsChain, dataplane::kRejectChain}) {
      out_.chains[name].chain.name = name;
    }
    for (const char* name : {dataplane::kNatPreroutingChain, dataplane::kNatOutputChain}) {
      Add(Rule(name).Finish(nft::Jump(dataplane::kServicesChain)));
    }
    for (const char* name : {dataplane::kFilterPreroutingChain, dataplane::kFilterOutputChain}) {
      JumpIfNew(name, dataplane::kFirewallChain);
    }
    for (const char* name : {dataplane::kFilterInputChain, dataplane::kFilterForwardChain,
                             dataplane::kFilterOutputPostDnatChain}) {
      JumpIfNew(name, dataplane::kFilterChain);
    }
    for (const char* name : {dataplane::kFilterForwardChain, dataplane::kFilterOutputPostDnatChain}) {
      JumpIfNew(name, dataplane::kClusterIpsChain);
    }
    if (options_.ipvs) JumpIfNew(dataplane::kFilterInputChain, dataplane::kClusterIpsChain);
    Services();
    Filter();
    ClusterIps();
    Firewall();
    Postrouting();
    return std::move(out_);
  }

 private:
  void Base(const std::string& name, nft::HookType type, nft::HookPoint point, int priority) {
    out_.chains[name].chain = {.name = name, .hook = nft::Hook{type, point, priority}};
  }
  void Add(const Rule& rule) { out_.chains[rule.chain()].rules.push_back(rule); }
  void JumpIfNew(const char* from, const char* to) {
    Add(Rule(from).AnyBit(Field::kCtState, kCtStateNew).Finish(nft::Jump(to)));
  }
  Rule ToNode(const char* chain) const {
    Rule rule(chain);
    return rule.Load(0, build_.Destination()).InSet(0, build_.Name(kNodePortIps));
  }

  void Services() {
    Rule vip(dataplane::kServicesChain);
    build_.LoadVip(vip, 0);
    Add(vip.InSet(0, build_.Name(kServices)).Finish(nft::Goto(DispatchChain(false))));
    Rule node_port = ToNode(dataplane::kServicesChain);
    build_.LoadNodePort(node_port, 0);
    Add(node_port.InSet(0, build_.Name(kNodePorts)).Finish(nft::Goto(DispatchChain(true))));
  }

  void Filter() {
    auto vip = [&](SetId set, nft::Verdict verdict) {
      Rule rule(dataplane::kFilterChain);
      build_.LoadVip(rule, 0);
      Add(rule.InSet(0, build_.Name(set)).Finish(std::move(verdict)));
    };
    auto node_port = [&](SetId set, nft::Verdict verdict) {
      Rule rule = ToNode(dataplane::kFilterChain);
      build_.LoadNodePort(rule, 0);
      Add(rule.InSet(0, build_.Name(set)).Finish(std::move(verdict)));
    };
    nft::Verdict drop{nft::Verdict::Kind::kDrop};
    vip(kRejectServices, nft::Goto(dataplane::kRejectChain));
    vip(kDropServices, drop);
    node_port(kRejectNodePorts, nft::Goto(dataplane::kRejectChain));
    node_port(kDropNodePorts, drop);
    Rule tcp(dataplane::kRejectChain);
    Add(tcp.Load(0, Field::kL4Proto).Equal(0, nft::Key().Proto(6).bytes()).RejectTcpReset());
    Add(Rule(dataplane::kRejectChain).RejectUnreachable());
  }

  void ClusterIps() {
    const nft::Verdict back{nft::Verdict::Kind::kReturn};
    Rule here(dataplane::kClusterIpsChain), unused_port(dataplane::kClusterIpsChain);
    // The cluster's DNS, say, answered by this node itself.
    here.Load(0, Field::kDaddrType).Equal(0, kLocalType).Finish(back);
    unused_port.Load(0, build_.Destination())
        .InSet(0, build_.Name(kClusterIps))
        .Finish(nft::Goto(dataplane::kRejectChain));
    if (options_.ipvs) {
      Rule used(dataplane::kClusterIpsChain);
      build_.LoadVip(used, 0);
      Add(used.InSet(0, build_.Name(kServices)).Finish(back));
      Add(unused_port);
      Add(here);
    } else {
      Add(here);
      Add(unused_port);
    }
    Add(Rule(dataplane::kClusterIpsChain).Finish(nft::Goto(dataplane::kServiceCidrsChain)));
  }

  void Firewall() {
    Rule rule(dataplane::kFirewallChain);
    int next = build_.LoadVip(rule, 0);
    rule.InSet(0, build_.Name(kLimited)).Load(next, build_.Source()).NotInSet(0, build_.Name(kSourceRanges));
    Add(rule.Finish({nft::Verdict::Kind::kDrop}));
  }

  void Postrouting() {
    Rule marked(dataplane::kNatPostroutingChain);
    marked.AnyBit(Field::kMark, options_.masquerade_bit).UnmarkBits(options_.masquerade_bit);
    Add(Masquerade(marked));
    // A pod that reaches itself through a Service would answer itself directly.
    for (Rule hairpin : Translated(dataplane::kNatPostroutingChain)) {
      hairpin.Load(0, build_.Source()).Load(build_.width(), build_.Destination());
      Add(Masquerade(hairpin.InSet(0, build_.Name(kHairpin))));
    }
    if (!options_.replies_bypass_node) return;
    for (const IpPrefix& cidr : options_.pod_cidrs) {
      for (Rule same_node : Translated(dataplane::kNatPostroutingChain)) {
        same_node.Load(0, build_.Destination()).InSet(0, build_.Name(kLocalEndpoints));
        build_.SourceInside(same_node, cidr, true);
        Add(Masquerade(same_node));
      }
    }
  }

  Rule& Masquerade(Rule& rule) const {
    if (options_.masquerade_below == 0) return rule.Masquerade();
    const auto last = static_cast<uint16_t>(options_.masquerade_below - 1);
    rule.Immediate(0, nft::Key().Port(1024).bytes()).Immediate(1, nft::Key().Port(last).bytes());
    return rule.Masquerade(0, 1);
  }

  // The beginning of a rule for each way in which a connection may have got another destination. What IPVS
  // does shows only in where the connection began: at a Service's own address.
  std::vector<Rule> Translated(const char* chain) const {
    std::vector<Rule> out;
    out.push_back(Rule(chain).AnyBit(Field::kCtStatus, kCtStatusDnat));
    if (!options_.ipvs) return out;
    Rule& by_ipvs = out.emplace_back(chain);
    by_ipvs.Load(0, options_.v4 ? Field::kCtOriginalDaddr : Field::kCtOriginal6Daddr);
    by_ipvs.InSet(0, build_.Name(kClusterIps));
    return out;
  }

  const Options& options_;
  Builder build_;
  nft::Ruleset out_;
};

}  // namespace

std::vector<nft::Rule> ServiceCidrRules(const std::vector<IpPrefix>& cidrs, const Options& options) {
  Builder build(options);
  std::vector<nft::Rule> out;
  for (const IpPrefix& cidr : cidrs) {
    if (cidr.is_v4() != options.v4) continue;
    Rule rule(dataplane::kServiceCidrsChain);
    build.Inside(rule, build.Destination(), cidr, true);
    out.push_back(rule.Finish({nft::Verdict::Kind::kDrop}));
  }
  return out;
}

nft::Ruleset FixedRuleset(const Options& options) { return FixedWriter(options).Run(); }

}  // namespace keelson::proxy::nftables
