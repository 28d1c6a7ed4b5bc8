#include "controlplane/apiserver/admission/matching/resources.h"

#include "controlplane/apiserver/admission/matching/selectors.h"

namespace keelson::apiserver {
namespace {

api::LabelSelector SelectorOf(bool present, const metav1::LabelSelector& selector) {
  if (!present) return {};
  Result<api::LabelSelector> parsed = api::LabelSelector::From(selector);
  return parsed ? *parsed : api::LabelSelector();
}

}  // namespace

MatchCriteria CompileCriteria(const admissionregistrationv1::MatchResources& resources) {
  MatchCriteria out;
  out.namespaces = SelectorOf(resources.has_namespace_selector(), resources.namespace_selector());
  out.objects = SelectorOf(resources.has_object_selector(), resources.object_selector());
  out.rules = resources.resource_rules();
  out.excludes = resources.exclude_resource_rules();
  out.equivalent = resources.match_policy() != "Exact";
  return out;
}

Result<const api::ResourceInfo*> MatchRequest(const MatchCriteria& criteria, const AdmissionRequest& request,
                                              storage::Store& store) {
  const api::ResourceInfo* none = nullptr;
  if (!ObjectMatches(criteria.objects, request)) return none;
  if (!criteria.excludes.empty() && MatchRules(criteria.excludes, criteria.equivalent, request)) return none;
  const api::ResourceInfo* row =
      criteria.rules.empty() ? &request.info : MatchRules(criteria.rules, criteria.equivalent, request);
  if (!row) return none;
  // Only for criteria that are about this kind of request.
  KEELSON_ASSIGN_OR_RETURN(const bool in_namespace, NamespaceMatches(criteria.namespaces, request, store));
  return in_namespace ? row : none;
}

bool IsBeyondPolicies(const AdmissionRequest& request) {
  const std::string_view group = request.info.group;
  if (group == "admissionregistration.k8s.io") return !request.MainResource().ends_with("configurations");
  return group == "authorization.k8s.io" || group == "authentication.k8s.io";
}

}  // namespace keelson::apiserver
