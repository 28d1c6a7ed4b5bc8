#include "cni/agent/policy/counters.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "lib/base/log.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/metrics/metrics.h"

namespace keelson::cni::agent {
namespace {

metrics::Family& Packets() {
  static metrics::Family& family =
      metrics::Counter("keelson_cni_network_policy_packets_total",
                       "First packets of connections that rules of a policy on this node have decided about.",
                       {"policy", "direction", "verdict"});
  return family;
}

// "x/a ingress[0], x/b ingress[1]" and "x/a, x/b": the names, each once.
std::set<std::string> PoliciesOf(std::string_view note) {
  std::set<std::string> out;
  while (!note.empty()) {
    size_t end = std::min(note.find(", "), note.size());
    std::string_view part = note.substr(0, end);
    out.emplace(part.substr(0, part.find(' ')));
    note.remove_prefix(std::min(note.size(), end + 2));
  }
  // The end of what was cut off is no name, unless there is no other.
  if (out.size() > 1) std::erase_if(out, [](const std::string& name) { return name.ends_with("..."); });
  return out;
}

bool Drops(const nft::Program& program) {
  const auto* finish =
      program.exprs.empty() ? nullptr : std::get_if<nft::expr::Finish>(&program.exprs.back());
  return finish && finish->verdict.kind == nft::Verdict::Kind::kDrop;
}

}  // namespace

std::vector<PolicyPackets> PolicyCounters::Count(
    const std::map<std::string, std::vector<nft::Program>>& chains) {
  std::vector<PolicyPackets> out;
  std::map<std::pair<std::string, uint64_t>, uint64_t> now;
  MutexLock lock(mutex_);
  for (const auto& [chain, programs] : chains) {
    const bool ingress = chain.starts_with("ingress");
    if (!ingress && !chain.starts_with("egress")) continue;
    for (const nft::Program& program : programs) {
      if (program.note.empty()) continue;
      std::pair<std::string, uint64_t> rule(chain, program.handle);
      auto known = before_.find(rule);
      uint64_t before = known == before_.end() ? 0 : known->second;
      for (const std::string& policy : PoliciesOf(program.note)) {
        out.push_back({policy, ingress ? "ingress" : "egress", Drops(program) ? "denied" : "allowed",
                       program.packets - std::min(before, program.packets)});
      }
      now.emplace(std::move(rule), program.packets);
    }
  }
  before_ = std::move(now);
  return out;
}

void PolicyCounters::Collect() {
  auto rules = nft::ReadRules(dataplane::PolicyTable());
  if (!rules) {
    log::Warn("Counters of network policies cannot be read", {{"err", rules.error()}});
    return;
  }
  std::set<std::vector<std::string>> now;
  for (const PolicyPackets& counted : Count(*rules)) {
    std::vector<std::string> labels = {counted.policy, counted.direction, counted.verdict};
    Packets().With(labels).Add(static_cast<double>(counted.packets));
    now.insert(std::move(labels));
  }
  // Policies that have gone take their series along.
  MutexLock lock(mutex_);
  for (const std::vector<std::string>& labels : shown_) {
    if (!now.contains(labels)) Packets().Remove(labels);
  }
  shown_ = std::move(now);
}

}  // namespace keelson::cni::agent
