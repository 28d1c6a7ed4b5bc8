// Compares sets of RBAC rules, to prevent privilege escalation.
#pragma once

#include <string>
#include <vector>

#include "controlplane/apiserver/authz/authorizer.h"

namespace keelson::apiserver {

// The permissions (one verb on one resource, name or URL) in `wanted` that no rule in `have` covers.
std::vector<PolicyRule> Uncovered(const std::vector<PolicyRule>& have, const std::vector<PolicyRule>& wanted);
// Merges the verbs of permissions on the same resource.
std::vector<PolicyRule> Compact(const std::vector<PolicyRule>& single);
// {APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}
std::string Describe(const PolicyRule& rule);
// Go's %q of a list: ["a" "b"]
std::string QuotedList(const std::vector<std::string>& items);

}  // namespace keelson::apiserver
