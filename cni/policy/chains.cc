#include "cni/policy/chains.h"

#include <algorithm>

#include "cni/policy/base_rules.h"
#include "lib/crypto/digest.h"

namespace keelson::cni::policy {
namespace {

constexpr int kPortKey = 8;  // register: behind an IPv6 address and everything that follows it

nft::Field Other(Direction direction, bool v4) {
  if (direction == Direction::kIngress) return v4 ? nft::Field::kIpSaddr : nft::Field::kIp6Saddr;
  return v4 ? nft::Field::kIpDaddr : nft::Field::kIp6Daddr;
}

// Of clauses that do not drop.
nft::Verdict VerdictOf(const Clause& clause, const std::string& next) {
  if (clause.action == Clause::Action::kNextChain && !next.empty()) return nft::Goto(next);
  return {nft::Verdict::Kind::kReturn};
}

// The part of a rule that decides whether it matches.
nft::Rule Matching(const std::string& chain, const Clause& clause, Direction direction, bool v4) {
  nft::Rule rule(chain);
  if (clause.peers) {
    int next = v4 ? 1 : 4;
    rule.Load(0, Other(direction, v4));
    if (clause.form != Clause::Form::kAddresses) rule.Load(next++, nft::Field::kL4Proto);
    bool with_port = clause.form == Clause::Form::kBlocksAndPorts || clause.form == Clause::Form::kNamedPorts;
    if (with_port) rule.Load(next, nft::Field::kDestinationPort);
    rule.InSet(0, clause.peers->set.name);
  }
  if (clause.ports) {
    rule.Load(kPortKey, nft::Field::kL4Proto).Load(kPortKey + 1, nft::Field::kDestinationPort);
    rule.InSet(kPortKey, clause.ports->set.name);
  }
  return rule;
}

std::string LogPrefix(const std::string& policies, Direction direction) {
  constexpr size_t kLongest = 127;  // NF_LOG_PREFIXLEN
  std::string out = direction == Direction::kIngress ? "denied ingress by " : "denied egress by ";
  out += policies;
  return out.size() < kLongest ? out + " " : out.substr(0, kLongest);
}

}  // namespace

std::string VerdictsName(Direction direction, bool v4) {
  return std::string(direction == Direction::kEgress ? "egress" : "ingress") + (v4 ? "4" : "6");
}

PodRules ToOwnNode(const PodRules& egress) {
  PodRules out{.admin = egress.admin};
  if (!egress.permitted) out.baseline = egress.baseline;
  return out;
}

std::vector<ChainSpec> ChainsFor(const PodRules& rules, Direction direction, bool v4) {
  std::vector<ChainSpec> out;
  if (!rules.admin.empty()) out.push_back({.name = {}, .clauses = rules.admin, .note = {}, .next = {}});
  if (rules.permitted) {
    ChainSpec& isolating = out.emplace_back();
    isolating.clauses = *rules.permitted;
    isolating.isolates = true;
    for (const std::string& policy : rules.isolated_by) {
      isolating.note += (isolating.note.empty() ? "" : ", ") + policy;
    }
  } else if (!rules.baseline.empty()) {
    out.push_back({.name = {}, .clauses = rules.baseline, .note = {}, .next = {}});
  }
  for (size_t i = out.size(); i-- > 0;) {
    ChainSpec& chain = out[i];
    if (i + 1 < out.size()) chain.next = out[i + 1].name;
    std::string description = (chain.isolates ? "" : "goes on ") + chain.note + chain.next + "\n";
    for (const Clause& clause : chain.clauses) {
      if (clause.peers) description += clause.peers->set.name;
      description += ' ';
      if (clause.ports) description += clause.ports->set.name;
      description += ' ' + std::to_string(static_cast<int>(clause.action)) + ' ' + clause.note + '\n';
    }
    chain.name = VerdictsName(direction, v4) + "-" + crypto::Sha256Hex(description).substr(0, 24);
  }
  return out;
}

std::vector<const ClusterPolicy*> Deciding(const Cluster& cluster, ClusterPolicy::Tier tier, const Pod& pod) {
  auto labels = cluster.namespaces.find(pod.ns);
  const Labels* of_namespace = labels == cluster.namespaces.end() ? nullptr : &labels->second;
  std::vector<const ClusterPolicy*> out;
  for (const auto& [name, policy] : cluster.cluster_policies) {
    if (policy.tier == tier && policy.Selects(pod.labels, of_namespace)) out.push_back(&policy);
  }
  std::sort(out.begin(), out.end(),
            [](const ClusterPolicy* a, const ClusterPolicy* b) { return a->Before(*b); });
  return out;
}

std::vector<nft::Rule> RulesOf(const ChainSpec& chain, Direction direction, bool v4,
                               const std::optional<DeniedLog>& log) {
  std::vector<nft::Rule> out;
  out.reserve(chain.clauses.size() + 3);
  if (chain.isolates) out.push_back(ToItself(chain.name, v4));
  // Logs and drops what `matching` matches.
  auto drop = [&](const nft::Rule& matching, const std::string& note) {
    if (log) {
      nft::Rule report = matching;
      report.Limit(log->per_second, log->per_second).Log(log->group, LogPrefix(note, direction));
      out.push_back(std::move(report));
    }
    nft::Rule rule = matching;
    rule.Counter().Finish({nft::Verdict::Kind::kDrop}).SetNote(note);
    out.push_back(std::move(rule));
  };
  for (const Clause& clause : chain.clauses) {
    nft::Rule rule = Matching(chain.name, clause, direction, v4);
    if (clause.action == Clause::Action::kDrop) {
      drop(rule, clause.note);
      continue;
    }
    rule.Counter().Finish(VerdictOf(clause, chain.next)).SetNote(clause.note);
    out.push_back(std::move(rule));
  }
  if (chain.isolates) {
    drop(nft::Rule(chain.name), chain.note);
  } else if (!chain.next.empty()) {
    out.push_back(std::move(nft::Rule(chain.name).Finish(nft::Goto(chain.next))));
  }
  return out;
}

}  // namespace keelson::cni::policy
