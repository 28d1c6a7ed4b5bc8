#include "controlplane/apiserver/admission/matching/rules.h"

#include <algorithm>

#include "controlplane/apiextensions/custom_resource.h"

namespace keelson::apiserver {
namespace {

using admissionregistrationv1::NamedRuleWithOperations;
using admissionregistrationv1::RuleWithOperations;
template <typename T>
using Repeated = google::protobuf::RepeatedPtrField<T>;

bool Contains(const Repeated<std::string>& items, std::string_view wanted) {
  return std::any_of(items.begin(), items.end(),
                     [&](const std::string& item) { return item == "*" || item == wanted; });
}

std::pair<std::string_view, std::string_view> SplitSubresource(std::string_view resource) {
  const size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return {resource, {}};
  return {resource.substr(0, slash), resource.substr(slash + 1)};
}

bool InScope(const admissionregistrationv1::Rule& rule, const AdmissionRequest& request,
             const api::ResourceInfo& row) {
  if (!rule.has_scope() || rule.scope() == "*") return true;
  const bool is_namespace =
      row.group.empty() && row.version == "v1" && SplitSubresource(row.resource).first == "namespaces";
  const bool in_namespace = !is_namespace && !request.ns.empty();
  if (rule.scope() == "Namespaced") return in_namespace;
  return rule.scope() == "Cluster" && !in_namespace;
}

bool HasResource(const Repeated<std::string>& resources, std::string_view wanted) {
  const auto [name, sub] = SplitSubresource(wanted);
  for (const std::string& resource : resources) {
    const auto [rule_name, rule_sub] = SplitSubresource(resource);
    if ((rule_name == "*" || rule_name == name) && (rule_sub == "*" || rule_sub == sub)) return true;
  }
  return false;
}

const RuleWithOperations& RuleOf(const RuleWithOperations& rule) { return rule; }
const RuleWithOperations& RuleOf(const NamedRuleWithOperations& rule) { return rule.rule_with_operations(); }

bool NamesMatch(const RuleWithOperations&, const AdmissionRequest&) { return true; }
bool NamesMatch(const NamedRuleWithOperations& rule, const AdmissionRequest& request) {
  if (rule.resource_names().empty()) return true;
  const std::string name = request.Name();
  return std::any_of(rule.resource_names().begin(), rule.resource_names().end(),
                     [&](const std::string& one) { return one == name; });
}

template <typename Rule>
const api::ResourceInfo* Match(const Repeated<Rule>& rules, bool equivalent,
                               const AdmissionRequest& request) {
  for (const Rule& rule : rules) {
    if (RuleMatches(RuleOf(rule), request, request.info) && NamesMatch(rule, request)) return &request.info;
  }
  if (!equivalent) return nullptr;
  const std::vector<const api::ResourceInfo*> others = EquivalentRows(request.info);
  if (others.empty()) return nullptr;
  for (const Rule& rule : rules) {
    for (const api::ResourceInfo* row : others) {
      if (RuleMatches(RuleOf(rule), request, *row) && NamesMatch(rule, request)) return row;
    }
  }
  return nullptr;
}

// The rows of the other versions that are served.
std::vector<const api::ResourceInfo*> CustomRows(const apiextensions::CustomRow& row) {
  std::vector<const api::ResourceInfo*> out;
  const std::shared_ptr<const apiextensions::Definition> definition = row.owner->definition();
  if (!definition) return out;
  const std::string_view sub = SplitSubresource(row.resource).second;
  for (const auto& version : definition->versions) {
    if (!version->served || version->name == row.version) continue;
    if ((sub == "status" && !version->has_status) || (sub == "scale" && !version->scale)) continue;
    out.push_back(&row.owner->Row(version->name, sub));
  }
  return out;
}

}  // namespace

bool RuleMatches(const RuleWithOperations& rule, const AdmissionRequest& request,
                 const api::ResourceInfo& row) {
  return InScope(rule.rule(), request, row) && Contains(rule.operations(), NameOf(request.operation)) &&
         Contains(rule.rule().api_groups(), row.group) && Contains(rule.rule().api_versions(), row.version) &&
         HasResource(rule.rule().resources(), row.resource);
}

const api::ResourceInfo* MatchRules(const Repeated<RuleWithOperations>& rules, bool equivalent,
                                    const AdmissionRequest& request) {
  return Match(rules, equivalent, request);
}

const api::ResourceInfo* MatchRules(const Repeated<NamedRuleWithOperations>& rules, bool equivalent,
                                    const AdmissionRequest& request) {
  return Match(rules, equivalent, request);
}

std::vector<const api::ResourceInfo*> EquivalentRows(const api::ResourceInfo& row) {
  if (const apiextensions::CustomRow* custom = apiextensions::CustomOf(row)) return CustomRows(*custom);
  const auto [name, sub] = SplitSubresource(row.resource);
  const api::ResourceInfo* main = sub.empty() ? &row : api::FindResource(row.group, row.version, name);
  std::vector<const api::ResourceInfo*> out;
  if (!main || main->etcd_prefix.empty()) return out;
  for (const api::ResourceInfo& other : api::Resources()) {
    if (&other == main || other.etcd_prefix != main->etcd_prefix) continue;
    if (sub.empty()) {
      out.push_back(&other);
      continue;
    }
    const std::string resource = std::string(other.resource) + "/" + std::string(sub);
    if (const api::ResourceInfo* same = api::FindResource(other.group, other.version, resource)) {
      out.push_back(same);
    }
  }
  return out;
}

bool IsAdmissionConfiguration(const AdmissionRequest& request) {
  if (request.info.kind_group != "admissionregistration.k8s.io") return false;
  static constexpr std::string_view kKinds[] = {
      "ValidatingWebhookConfiguration",   "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
      "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",      "MutatingAdmissionPolicyBinding"};
  return std::find(std::begin(kKinds), std::end(kKinds), request.info.kind) != std::end(kKinds);
}

}  // namespace keelson::apiserver
