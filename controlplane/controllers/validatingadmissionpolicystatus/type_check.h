// Type checks of ValidatingAdmissionPolicies: pure (k8s.io/apiserver/pkg/admission/plugin/policy/validating,
// typechecking.go).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/k8s/expressions/environment.h"

namespace keelson::controllers {

namespace admissionregistrationv1 = api::admissionregistration::v1;

struct CheckedKind {
  std::string group, version, kind;

  auto operator<=>(const CheckedKind&) const = default;
  // In Go's form: "apps/v1, Kind=Deployment", "/v1, Kind=Pod".
  std::string ToString() const;
};

// The kind that a resource has in that version; empty: no server has the resource.
using KindOfResource =
    std::function<std::string(std::string_view group, std::string_view version, const std::string& resource)>;

// What the policy's rules name, sorted: no wildcards, no subresources. The search ends with the rule that brings the
// tenth kind.
std::vector<CheckedKind> KindsToCheck(const admissionregistrationv1::ValidatingAdmissionPolicy& policy,
                                      const KindOfResource& kind_of);

struct TypedKind {
  CheckedKind kind;
  cel::DeclTypePtr type;
};

// What is wrong with validations and their messages for objects of these types. `params` null: the policy has no
// parameters, or their type is unknown; then expressions cannot name them.
std::vector<admissionregistrationv1::ExpressionWarning> CheckTypes(
    const admissionregistrationv1::ValidatingAdmissionPolicy& policy, const std::vector<TypedKind>& kinds,
    const cel::DeclTypePtr& params);

}  // namespace keelson::controllers
