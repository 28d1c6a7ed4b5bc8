#include <algorithm>

#include "proxy/nftables/rule_builder.h"

namespace keelson::proxy::nftables {
namespace {

// Writes the rules of one pick chain.
class PickWriter {
 public:
  PickWriter(const PickSpec& spec, const Options& options)
      : spec_(spec), options_(options), build_(options), chain_(spec.ChainName()) {}

  std::vector<Rule> Run() {
    switch (spec_.kind) {
      case PickSpec::Kind::kCluster:
        MarkForeign();
        if (!options_.ipvs) Pick(Rule(chain_), spec_.cluster, 0);
        break;
      case PickSpec::Kind::kExternal:
        Mark(Rule(chain_));
        if (!options_.ipvs) Pick(Rule(chain_), spec_.cluster, 0);
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
    } else if (options_.DetectsPods()) {
      Mark(build_.NotFromPods(chain_));
    }
  }

  // externalTrafficPolicy Local: pods and the node itself may use every endpoint, others those of this node.
  void External() {
    if (spec_.cluster > 0) {
      for (const Rule& rule : build_.FromPods(chain_)) Pick(rule, spec_.cluster, 0);
      Rule from_node(chain_);
      from_node.Load(0, Field::kSaddrType).Equal(0, kLocalType);
      Mark(from_node);
      Rule marked(chain_);
      Pick(marked.AnyBit(Field::kMark, options_.masquerade_bit), spec_.cluster, 0);
    }
    if (spec_.local > 0) Pick(Rule(chain_), spec_.local, kFirstLocalSlot);
  }

  void Pick(const Rule& prefix, uint32_t count, uint32_t first_slot) {
    if (spec_.affinity.count() > 0) return PickWithAffinity(prefix, count, first_slot);
    SetId endpoints = spec_.node_port ? kNodePortEndpoints : kEndpoints;
    Rule rule = prefix;
    int slot = LoadKey(rule, 0);
    rule.Random(slot, count, first_slot).Map(0, build_.Name(endpoints), 0);
    rules_.push_back(rule.Dnat(options_.Table().family, 0, build_.width()));
  }

  // Keys are client . destination . slot. An endpoint keeps its slot, and one that goes leaves a hole: so
  // nobody else's clients move.
  void PickWithAffinity(const Rule& prefix, uint32_t count, uint32_t first_slot) {
    constexpr int kTries = 8;
    constexpr uint32_t kForgetAtOnce = 32;  // a rule holds 128 expressions
    const int width = build_.width();
    const std::string affinity = build_.Name(spec_.node_port ? kNodePortAffinity : kAffinity);
    const std::string endpoints = build_.Name(spec_.node_port ? kNodePortEndpoints : kEndpoints);
    int slot = 0;
    auto begin = [&] {
      Rule rule = prefix;
      slot = LoadKey(rule.Load(0, build_.Source()), width);
      return rule;
    };
    auto number = [&](uint32_t i) { return nft::Key().Mark(first_slot + i).bytes(); };
    auto finish = [&](Rule& rule) {
      rule.Map(width, endpoints, slot + 1).Update(0, affinity, spec_.affinity);
      rules_.push_back(rule.Dnat(options_.Table().family, slot + 1, slot + 1 + width));
    };
    // The slot of last time, if it is still filled.
    for (uint32_t i = 0; i < count; ++i) {
      Rule again = begin();
      finish(again.Immediate(slot, number(i)).InSet(0, affinity));
    }
    // From now on it is another one, even should the old endpoint come back.
    for (uint32_t first = 0; first < count; first += kForgetAtOnce) {
      Rule forget = begin();
      for (uint32_t i = first; i < std::min(count, first + kForgetAtOnce); ++i) {
        forget.Immediate(slot, number(i)).Forget(0, affinity);
      }
      rules_.push_back(forget);
    }
    // A hole ends the rule. At least half of the slots are filled: one try in 256 gets past all of these.
    for (int i = 0; i < kTries; ++i) {
      Rule fresh = begin();
      finish(fresh.Random(slot, count, first_slot));
    }
    for (uint32_t i = 0; i < count; ++i) {
      Rule any = begin();
      finish(any.Immediate(slot, number(i)));
    }
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

}  // namespace

std::string PickSpec::ChainName() const {
  std::string out = node_port ? dataplane::kNodePortPickChainPrefix : dataplane::kPickChainPrefix;
  if (kind == Kind::kExternal && !node_port) out += dataplane::kPickExternal;
  if (kind == Kind::kExternalLocal) out += dataplane::kPickLocal;
  out += std::to_string(cluster);
  if (kind == Kind::kExternalLocal) out += "-" + std::to_string(local);
  if (affinity.count() > 0) out += dataplane::kPickAffinity + std::to_string(affinity.count());
  return out;
}

bool IsStock(const PickSpec& spec) {
  PickSpec plain{.cluster = spec.cluster};
  return spec == plain && spec.cluster > 0 && spec.cluster <= kStockPicks;
}

std::vector<PickSpec> StockPicks(const Options& options) {
  std::vector<PickSpec> out;
  if (options.ipvs) return out;
  for (uint32_t i = 1; i <= kStockPicks; ++i) out.push_back({.cluster = i});
  return out;
}

nft::Set UseSet(const PickSpec& spec, bool v4) {
  return {.name = dataplane::kUseSetPrefix + spec.ChainName(),
          .key = SetOf(spec.node_port ? kNodePorts : kServices, v4).key};
}

const char* DispatchChain(bool node_port) {
  return node_port ? dataplane::kDispatchNodePortsChain : dataplane::kDispatchChain;
}

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

std::vector<nft::Rule> PickChainRules(const PickSpec& spec, const Options& options) {
  return PickWriter(spec, options).Run();
}

}  // namespace keelson::proxy::nftables
