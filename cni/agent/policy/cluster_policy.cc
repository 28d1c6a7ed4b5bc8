#include "cni/agent/policy/cluster_policy.h"

#include <algorithm>
#include <boost/json.hpp>
#include <optional>

#include "cni/agent/policy/policy_parts.h"

namespace keelson::cni::agent {
namespace {

namespace json = boost::json;
using json_parts::Find;
using json_parts::List;
using json_parts::Number;
using json_parts::Text;
using policy::Selector;

constexpr int kBehindAll = 1001;  // a BaselineAdminNetworkPolicy, of its tier

// The name is for people: what would not fit into a comment or a list of names is replaced.
std::string PlainName(std::string name) {
  for (char& c : name) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                 c == '_' || c == '.' || c == ' ';
    if (!plain) c = '_';
  }
  return name;
}

std::optional<policy::TierRule::Action> ActionOf(ClusterPolicyKind kind, std::string_view name) {
  using Action = policy::TierRule::Action;
  if (name == (kind == ClusterPolicyKind::kClusterNetworkPolicy ? "Accept" : "Allow")) return Action::kAccept;
  if (name == "Deny") return Action::kDeny;
  if (name == "Pass" && kind != ClusterPolicyKind::kBaselineAdminNetworkPolicy) return Action::kPass;
  return std::nullopt;
}

// What is wrong with the rule; empty: nothing.
std::string ReadRule(const json::value& value, ClusterPolicyKind kind, bool ingress, policy::TierRule& rule) {
  std::string problem;
  PartReader reader(problem);
  rule.name = PlainName(Text(value, "name"));
  const std::string name = Text(value, "action");
  const std::optional<policy::TierRule::Action> action = ActionOf(kind, name);
  rule.action = action.value_or(policy::TierRule::Action::kDeny);
  if (!action) problem = "unknown action \"" + name + "\"";
  const PartReader::Place place{.ingress = ingress,
                                .accepts = rule.action == policy::TierRule::Action::kAccept};
  for (const json::value& peer : List(value, ingress ? "from" : "to")) {
    reader.ReadPeer(peer, place, rule.peers);
  }
  if (rule.peers.empty() && problem.empty()) problem = "no peers";
  const bool old = kind != ClusterPolicyKind::kClusterNetworkPolicy;
  const char* ports = old ? "ports" : "protocols";
  for (const json::value& port : List(value, ports)) {
    old ? reader.ReadPort(port, rule.ports) : reader.ReadProtocol(port, rule.ports);
  }
  if (Find(value, ports) && rule.ports.empty() && problem.empty()) problem = std::string("no ") + ports;
  const bool no_pods = std::any_of(rule.peers.begin(), rule.peers.end(), [](const policy::Peer& peer) {
    return !peer.domain.empty() || peer.nodes;
  });
  const bool named = std::any_of(rule.ports.begin(), rule.ports.end(),
                                 [](const policy::Port& port) { return !port.name.empty(); });
  if (no_pods && named) problem = "a named port beside domainNames or nodes";
  return problem;
}

void ReadRules(const json::value& spec, ClusterPolicyKind kind, bool ingress, policy::ClusterPolicy& out) {
  using Action = policy::TierRule::Action;
  const std::string field = ingress ? "ingress" : "egress";
  for (const json::value& value : List(spec, field)) {
    auto& rules = ingress ? out.ingress : out.egress;
    policy::TierRule& rule = rules.emplace_back();
    const std::string problem = ReadRule(value, kind, ingress, rule);
    if (problem.empty()) continue;
    const std::string where = "rule " + std::to_string(rules.size() - 1) + " of " + field;
    if (rule.action == Action::kAccept) {
      // The place stays, so that numbers of rules are those of the object. No pod has a label without a key.
      rule.ports.clear();
      rule.peers = {
          {.pods = Selector{{{.key = {}, .op = Selector::Op::kNothing}}}, .namespaces = Selector()}};
      out.problems.push_back(where + " accepts nothing: " + problem);
    } else {
      rule.action = Action::kDeny;
      rule.peers.clear();
      rule.ports.clear();
      out.problems.push_back(where + " denies everything: " + problem);
    }
  }
}

std::string NameIn(ClusterPolicyKind kind, const std::string& object) {
  switch (kind) {
    case ClusterPolicyKind::kAdminNetworkPolicy:
      return "AdminNetworkPolicy/" + object;
    case ClusterPolicyKind::kBaselineAdminNetworkPolicy:
      return "BaselineAdminNetworkPolicy/" + object;
    case ClusterPolicyKind::kClusterNetworkPolicy:
      break;
  }
  return object;
}

std::string TierOf(ClusterPolicyKind kind, const json::value& spec) {
  if (kind == ClusterPolicyKind::kAdminNetworkPolicy) return "Admin";
  return kind == ClusterPolicyKind::kBaselineAdminNetworkPolicy ? "Baseline" : Text(spec, "tier");
}

ParsedClusterPolicy ReadPolicy(const json::value& object, ClusterPolicyKind kind) {
  ParsedClusterPolicy out;
  static const json::value nothing;
  const json::value* metadata = Find(object, "metadata");
  const json::value* found = Find(object, "spec");
  const json::value& spec = found ? *found : nothing;
  policy::ClusterPolicy& policy = out.policy;
  if (metadata) out.object = Text(*metadata, "name");
  policy.name = NameIn(kind, out.object);
  if (metadata) out.generation = Number(*metadata, "generation");
  const std::string tier = TierOf(kind, spec);
  policy.tier =
      tier == "Baseline" ? policy::ClusterPolicy::Tier::kBaseline : policy::ClusterPolicy::Tier::kAdmin;
  policy.priority = kind == ClusterPolicyKind::kBaselineAdminNetworkPolicy
                        ? kBehindAll
                        : static_cast<int>(std::clamp<int64_t>(Number(spec, "priority"), 0, 1000));
  std::string problem;
  PartReader reader(problem);
  const json::value* subject = Find(spec, "subject");
  if (!subject || !reader.ReadSelectors(*subject, policy.namespaces, policy.pods)) {
    problem = "unknown subject";
  }
  bool only_denies = !problem.empty();
  if (!problem.empty()) {
    for (Selector* selector : {&policy.namespaces, &policy.pods}) {
      std::erase_if(selector->requirements, [](const auto& r) { return r.op == Selector::Op::kNothing; });
    }
    policy.problems.push_back("only rules that deny count, perhaps for more pods than are meant: " + problem);
  }
  ReadRules(spec, kind, true, policy);
  ReadRules(spec, kind, false, policy);
  if (tier != "Admin" && tier != "Baseline") {
    only_denies = true;
    policy.problems.push_back("only rules that deny count, in tier Admin: unknown tier \"" + tier + "\"");
  }
  // What they let through might not be theirs to let through.
  if (only_denies) {
    for (auto* rules : {&policy.ingress, &policy.egress}) {
      std::erase_if(*rules, [](const auto& r) { return r.action != policy::TierRule::Action::kDeny; });
    }
  }
  const json::value* status = Find(object, "status");
  for (const json::value& condition : List(status ? *status : nothing, "conditions")) {
    if (Text(condition, "type") != kEnforcedCondition) continue;
    out.enforced = Text(condition, "status");
    out.message = Text(condition, "message");
  }
  return out;
}

std::string MessageOf(const policy::ClusterPolicy& policy) {
  std::string out;
  for (const std::string& problem : policy.problems) out += (out.empty() ? "" : "; ") + problem;
  return out.empty() ? "every rule is enforced as written" : out;
}

}  // namespace

Result<ClusterPolicyList> ParseClusterPolicies(std::string_view text, ClusterPolicyKind kind) {
  boost::system::error_code error;
  const json::value list = json::parse(text, error);
  if (error || !Find(list, "items")) return Error(Code::kInternal, "no list of policies");
  ClusterPolicyList out;
  if (const json::value* metadata = Find(list, "metadata")) {
    out.resource_version = Text(*metadata, "resourceVersion");
  }
  for (const json::value& item : List(list, "items")) out.policies.push_back(ReadPolicy(item, kind));
  return out;
}

bool NeedsStatus(const ParsedClusterPolicy& policy) {
  const bool enforced = policy.policy.problems.empty();
  return policy.enforced != (enforced ? "True" : "False") || policy.message != MessageOf(policy.policy);
}

std::string StatusPatch(const ParsedClusterPolicy& policy, const std::string& now) {
  const bool enforced = policy.policy.problems.empty();
  json::object condition{{"type", kEnforcedCondition},
                         {"status", enforced ? "True" : "False"},
                         {"reason", enforced ? "Enforced" : "NotSupported"},
                         {"message", MessageOf(policy.policy)},
                         {"observedGeneration", policy.generation},
                         {"lastTransitionTime", now}};
  return json::serialize(
      json::object{{"status", json::object{{"conditions", json::array{std::move(condition)}}}}});
}

}  // namespace keelson::cni::agent
