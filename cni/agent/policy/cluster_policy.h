// Reads ClusterNetworkPolicies (policy.networking.k8s.io, v1alpha2 and v1beta1), and the kinds of v1alpha1 that they have
// replaced, from JSON: custom resources have no other form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cni/policy/objects.h"
#include "lib/base/error.h"

namespace keelson::cni::agent {

enum class ClusterPolicyKind { kClusterNetworkPolicy, kAdminNetworkPolicy, kBaselineAdminNetworkPolicy };

struct ParsedClusterPolicy {
  policy::ClusterPolicy policy;
  std::string object;  // metadata.name
  int64_t generation = 0;
  // What the condition kEnforcedCondition says now; empty: there is none.
  std::string enforced, message;
};
struct ClusterPolicyList {
  std::string resource_version;
  std::vector<ParsedClusterPolicy> policies;
};

// "True": every rule is enforced as written. "False": the message names those that are not.
inline constexpr char kEnforcedCondition[] = "Enforced";

// Errors only when the text is no list. Rules with a peer, port or action that cannot be enforced are handled as
// the API says: one that accepts matches nothing, any other denies everything; `problems` names it. Of a policy
// whose subject or tier cannot be understood only the rules that deny are left.
Result<ClusterPolicyList> ParseClusterPolicies(std::string_view json, ClusterPolicyKind kind);

// The status that policies with these problems should have, as a merge patch; `now`: RFC 3339.
std::string StatusPatch(const ParsedClusterPolicy& policy, const std::string& now);
// Whether the status lacks what StatusPatch() would say.
bool NeedsStatus(const ParsedClusterPolicy& policy);

}  // namespace keelson::cni::agent
