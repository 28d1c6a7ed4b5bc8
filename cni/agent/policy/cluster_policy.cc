#include "cni/agent/policy/cluster_policy.h"

#include <netinet/in.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>

namespace keelson::cni::agent {
namespace {

namespace json = boost::json;
using policy::Selector;

const json::value* Find(const json::value& value, std::string_view field) {
  return value.is_object() ? value.get_object().if_contains(field) : nullptr;
}
const json::array& List(const json::value& value, std::string_view field) {
  static const json::array none;
  const json::value* found = Find(value, field);
  return found && found->is_array() ? found->get_array() : none;
}
std::string Text(const json::value& value, std::string_view field) {
  const json::value* found = Find(value, field);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}
// 0 for what is no whole number of a sensible size.
int64_t Number(const json::value& value, std::string_view field) {
  const json::value* found = Find(value, field);
  return found && found->is_int64() ? found->get_int64() : 0;
}

// A part of one rule, or of a subject; `problem` is set when it cannot be understood.
class PartReader {
 public:
  explicit PartReader(std::string& problem) : problem_(problem) {}

  Selector ReadSelector(const json::value& value) {
    Selector out;
    for (const json::value& expression : List(value, "matchExpressions")) {
      Selector::Requirement& wanted = out.requirements.emplace_back();
      wanted.key = Text(expression, "key");
      const std::string name = Text(expression, "operator");
      wanted.op = name == "In"             ? Selector::Op::kIn
                  : name == "NotIn"        ? Selector::Op::kNotIn
                  : name == "Exists"       ? Selector::Op::kExists
                  : name == "DoesNotExist" ? Selector::Op::kDoesNotExist
                                           : Selector::Op::kNothing;
      if (wanted.op == Selector::Op::kNothing) problem_ = "unknown operator \"" + name + "\" of a selector";
      for (const json::value& one : List(expression, "values")) {
        if (one.is_string()) wanted.values.emplace_back(one.get_string());
      }
    }
    const json::value* labels = Find(value, "matchLabels");
    if (!labels || !labels->is_object()) return out;
    policy::Labels equal;  // sorted, so that equal selectors have equal texts
    for (const auto& [key, wanted] : labels->get_object()) {
      if (wanted.is_string()) equal.emplace(key, std::string(wanted.get_string()));
    }
    for (const auto& [key, wanted] : equal) out.requirements.push_back({.key = key, .values = {wanted}});
    return out;
  }

  // `namespaces`, or `pods` with both selectors.
  bool ReadSelectors(const json::value& value, Selector& namespaces, Selector& pods) {
    if (const json::value* found = Find(value, "namespaces")) {
      namespaces = ReadSelector(*found);
      return true;
    }
    const json::value* found = Find(value, "pods");
    if (!found) return false;
    if (const json::value* of = Find(*found, "namespaceSelector")) namespaces = ReadSelector(*of);
    if (const json::value* of = Find(*found, "podSelector")) pods = ReadSelector(*of);
    return true;
  }

  void ReadPeer(const json::value& value, bool ingress, std::vector<policy::Peer>& out) {
    policy::Peer peer{.pods = Selector(), .namespaces = Selector()};
    if (!value.is_object() || value.get_object().size() != 1) {
      problem_ = "a peer without exactly one field that is known";
    } else if (ReadSelectors(value, *peer.namespaces, *peer.pods)) {
      out.push_back(std::move(peer));
    } else if (Find(value, "networks") && !ingress) {
      for (const json::value& cidr : List(value, "networks")) {
        Result<IpPrefix> parsed =
            IpPrefix::Parse(cidr.is_string() ? std::string_view(cidr.get_string()) : "");
        if (!parsed) problem_ = "a network that is no CIDR";
        if (parsed) out.push_back({.block = policy::Block{.cidr = parsed->Masked()}});
      }
    } else {
      problem_ =
          "peers of the kind \"" + std::string(value.get_object().begin()->key()) + "\" are not supported";
    }
  }

  void ReadProtocol(const json::value& value, std::vector<policy::Port>& out) {
    if (!value.is_object() || value.get_object().size() != 1) {
      problem_ = "a protocol without exactly one field that is known";
      return;
    }
    for (auto [field, number] :
         {std::pair("tcp", IPPROTO_TCP), std::pair("udp", IPPROTO_UDP), std::pair("sctp", IPPROTO_SCTP)}) {
      const json::value* found = Find(value, field);
      if (!found) continue;
      policy::Port port{.protocol = static_cast<uint8_t>(number)};
      const json::value* destination = Find(*found, "destinationPort");
      if (destination) ReadPort(*destination, port);
      // A field beside it may narrow the match down.
      if (!found->is_object() || found->get_object().size() != 1 || !destination) {
        problem_ = "a protocol without a destinationPort alone";
      }
      out.push_back(std::move(port));
      return;
    }
    const std::string name = Text(value, "destinationNamedPort");
    if (name.empty()) {
      problem_ = "an unknown protocol";
      return;
    }
    for (int number : {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP}) {
      out.push_back({.protocol = static_cast<uint8_t>(number), .name = name});
    }
  }

 private:
  void ReadPort(const json::value& value, policy::Port& out) {
    const json::value* range = Find(value, "range");
    const int64_t first = range ? Number(*range, "start") : Number(value, "number");
    const int64_t last = range ? Number(*range, "end") : first;
    if (first < 1 || last < first || last > 65535) {
      problem_ = "an invalid destinationPort";
      return;
    }
    out.first = static_cast<uint16_t>(first);
    out.last = static_cast<uint16_t>(last);
  }

  std::string& problem_;
};

// The name is for people: what would not fit into a comment or a list of names is replaced.
std::string PlainName(std::string name) {
  for (char& c : name) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                 c == '_' || c == '.' || c == ' ';
    if (!plain) c = '_';
  }
  return name;
}

void ReadRules(const json::value& spec, bool ingress, policy::ClusterPolicy& out) {
  using Action = policy::TierRule::Action;
  const std::string field = ingress ? "ingress" : "egress";
  for (const json::value& value : List(spec, field)) {
    auto& rules = ingress ? out.ingress : out.egress;
    policy::TierRule& rule = rules.emplace_back();
    rule.name = PlainName(Text(value, "name"));
    std::string problem;
    PartReader reader(problem);
    const std::string action = Text(value, "action");
    rule.action = action == "Accept" ? Action::kAccept : action == "Pass" ? Action::kPass : Action::kDeny;
    if (action != "Accept" && action != "Pass" && action != "Deny") {
      problem = "unknown action \"" + action + "\"";
    }
    for (const json::value& peer : List(value, ingress ? "from" : "to")) {
      reader.ReadPeer(peer, ingress, rule.peers);
    }
    if (rule.peers.empty() && problem.empty()) problem = "no peers";
    for (const json::value& protocol : List(value, "protocols")) reader.ReadProtocol(protocol, rule.ports);
    if (Find(value, "protocols") && rule.ports.empty() && problem.empty()) problem = "no protocols";
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

ParsedClusterPolicy ReadPolicy(const json::value& object) {
  ParsedClusterPolicy out;
  static const json::value nothing;
  const json::value* metadata = Find(object, "metadata");
  const json::value* found = Find(object, "spec");
  const json::value& spec = found ? *found : nothing;
  policy::ClusterPolicy& policy = out.policy;
  if (metadata) policy.name = Text(*metadata, "name");
  if (metadata) out.generation = Number(*metadata, "generation");
  const std::string tier = Text(spec, "tier");
  policy.tier =
      tier == "Baseline" ? policy::ClusterPolicy::Tier::kBaseline : policy::ClusterPolicy::Tier::kAdmin;
  policy.priority = static_cast<int>(std::clamp<int64_t>(Number(spec, "priority"), 0, 1000));
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
  ReadRules(spec, true, policy);
  ReadRules(spec, false, policy);
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

Result<ClusterPolicyList> ParseClusterPolicies(std::string_view text) {
  boost::system::error_code error;
  const json::value list = json::parse(text, error);
  if (error || !Find(list, "items")) return Error(Code::kInternal, "no list of ClusterNetworkPolicies");
  ClusterPolicyList out;
  if (const json::value* metadata = Find(list, "metadata")) {
    out.resource_version = Text(*metadata, "resourceVersion");
  }
  for (const json::value& item : List(list, "items")) out.policies.push_back(ReadPolicy(item));
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
