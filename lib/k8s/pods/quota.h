// What a ResourceQuota counts: the usage of an object, and the resources and scopes that apply to its kind.
// Admission charges usage with it; the controller recounts usage.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::k8s {

using QuotaScope = corev1::ScopedResourceSelectorRequirement;

// The scopes of a quota: spec.scopes (as Exists) and spec.scopeSelector.
std::vector<QuotaScope> QuotaScopes(const corev1::ResourceQuotaSpec& spec);
// Whether the object is in the scope. Kinds other than pods and claims have no scopes, so they are in none.
bool IsInScope(const api::ResourceInfo& info, const api::Message& object, const QuotaScope& scope);
bool IsInScopes(const api::ResourceInfo& info, const api::Message& object,
                const std::vector<QuotaScope>& scopes);

// Whether a quota's resource name ("limits.cpu", "count/deployments.apps") counts objects of this kind.
bool QuotaCounts(const api::ResourceInfo& info, std::string_view resource);
// The resource name that counts objects: "count/deployments.apps".
std::string QuotaCountName(const api::ResourceInfo& info);
// Whether the kind's usage is more than a count: pods, services, volume claims and device claims.
bool QuotaMeasures(const api::ResourceInfo& info);

// Everything that the object uses and a quota may count. A pod that has ended, or whose termination is
// overdue at `now`, uses only its object count.
ResourceList QuotaUsage(const api::ResourceInfo& info, const api::Message& object, WallTime now);

// What the object must specify before `resources` can be counted, in upstream's words ("must specify
// limits.cpu for: c"); empty: nothing is missing.
std::string QuotaProblem(const api::ResourceInfo& info, const api::Message& object,
                         const std::vector<std::string>& resources);

}  // namespace keelson::k8s
