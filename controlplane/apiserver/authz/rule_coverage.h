// Whether rules give all that other rules give: what nobody may exceed who hands rights on.
#pragma once

#include <string>
#include <vector>

#include "controlplane/apiserver/authz/authorizer.h"

namespace keelson::apiserver {

// The single rights (one verb on one resource, name or URL) of `wanted` that no rule of `have` gives.
std::vector<PolicyRule> Uncovered(const std::vector<PolicyRule>& have, const std::vector<PolicyRule>& wanted);
// Joins the verbs of single rights on one and the same resource.
std::vector<PolicyRule> Compact(const std::vector<PolicyRule>& single);
// {APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}
std::string Describe(const PolicyRule& rule);
// Go's %q of a list: ["a" "b"]
std::string QuotedList(const std::vector<std::string>& items);

}  // namespace keelson::apiserver
