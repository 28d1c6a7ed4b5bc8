#include "ctl/trace/policy_decision.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "lib/dataplane/policy_sets.h"

namespace keelson::ctl {
namespace {

// "drop (NOTE)", "goto CHAIN (NOTE)": NOTE. Nothing for other steps.
std::optional<std::string> NoteOf(std::string_view what, std::string_view verdict) {
  if (!what.starts_with(verdict)) return std::nullopt;
  what.remove_prefix(verdict.size());
  if (verdict == "goto") what.remove_prefix(std::min(what.find(" ("), what.size()));
  if (!what.starts_with(" (") || !what.ends_with(")")) return std::nullopt;
  return std::string(what.substr(2, what.size() - 3));
}

}  // namespace

std::vector<PolicyDecision> PolicyDecisionsOf(const std::vector<nft::TraceStep>& steps) {
  const std::string table = std::string("inet ") + dataplane::kPolicyTableName + " ";
  std::vector<PolicyDecision> out;
  for (const nft::TraceStep& step : steps) {
    if (!step.chain.starts_with(table)) continue;
    const std::string_view chain = std::string_view(step.chain).substr(table.size());
    PolicyDecision decision;
    if (chain.starts_with("ingress")) decision.direction = "ingress";
    if (chain.starts_with("egress")) decision.direction = "egress";
    if (std::optional<std::string> allowed = NoteOf(step.what, "return")) {
      decision.by = std::move(*allowed);
    } else if (std::optional<std::string> denied = NoteOf(step.what, "drop")) {
      // Rules have a number; names of policies have none.
      decision.kind = decision.direction.empty()               ? PolicyDecision::kNotReady
                      : denied->find('[') != std::string::npos ? PolicyDecision::kDeniedBy
                                                               : PolicyDecision::kDenied;
      decision.by = std::move(*denied);
    } else if (std::optional<std::string> passed = NoteOf(step.what, "goto")) {
      decision.kind = PolicyDecision::kPassedOn;
      decision.by = std::move(*passed);
    } else {
      continue;
    }
    out.push_back(std::move(decision));
  }
  return out;
}

std::string ToText(const PolicyDecision& decision) {
  switch (decision.kind) {
    case PolicyDecision::kAllowed:
      return decision.direction + " is allowed by " + decision.by;
    case PolicyDecision::kPassedOn:
      return decision.direction + " is passed on to the next tier by " + decision.by;
    case PolicyDecision::kDeniedBy:
      return decision.direction + " is denied by " + decision.by;
    case PolicyDecision::kDenied: {
      const bool several = decision.by.find(", ") != std::string::npos;
      return decision.direction + " is denied: " + decision.by + (several ? " isolate" : " isolates") +
             " the pod, and no rule of " + (several ? "theirs" : "it") + " lets this through";
    }
    case PolicyDecision::kNotReady:
      return "an address of this node's pods is not ready: kube-cni does not know its pod yet, or does not "
             "run";
  }
  return "";
}

}  // namespace keelson::ctl
