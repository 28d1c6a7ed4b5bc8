// The matchConstraints of an admission policy, and the matchResources of its bindings.
#pragma once

#include "controlplane/apiserver/admission/matching/rules.h"
#include "controlplane/storage/store.h"
#include "lib/api/selector.h"

namespace keelson::apiserver {

struct MatchCriteria {
  using Rules = google::protobuf::RepeatedPtrField<admissionregistrationv1::NamedRuleWithOperations>;
  api::LabelSelector namespaces, objects;
  Rules rules;             // none: every request
  Rules excludes;          // stronger than `rules`
  bool equivalent = true;  // matchPolicy
};

// A selector that does not parse, which validation excludes, matches everything.
MatchCriteria CompileCriteria(const admissionregistrationv1::MatchResources& resources);

// The row in whose version the rules want to see the request; null: they are not about it. kNotFound: they are, and its
// namespace does not exist.
Result<const api::ResourceInfo*> MatchRequest(const MatchCriteria& criteria, const AdmissionRequest& request,
                                              storage::Store& store);

// Whether the request is about admission policies, or asks who somebody is or what he may do: no policy judges it.
bool IsBeyondPolicies(const AdmissionRequest& request);

}  // namespace keelson::apiserver
