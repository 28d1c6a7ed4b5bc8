// What a ResourceQuota counts: usage of an object, resources and scopes that concern its kind. Shared by
// admission, which charges, and the controller, which counts anew.
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

// spec.scopes (as Exists) and spec.scopeSelector.
std::vector<QuotaScope> QuotaScopes(const corev1::ResourceQuotaSpec& spec);
// Is the object in the scope? Kinds other than pods and claims have no scopes, and are in none.
bool IsInScope(const api::ResourceInfo& info, const api::Message& object, const QuotaScope& scope);
bool IsInScopes(const api::ResourceInfo& info, const api::Message& object,
                const std::vector<QuotaScope>& scopes);

// Does a quota's resource name ("limits.cpu", "count/deployments.apps") count objects of the kind?
bool QuotaCounts(const api::ResourceInfo& info, std::string_view resource);
// "count/deployments.apps".
std::string QuotaCountName(const api::ResourceInfo& info);
// Kinds whose usage is more than their number: pods, services, claims of volumes and of devices.
bool QuotaMeasures(const api::ResourceInfo& info);

// All that the object uses, of everything that a quota may count. Pods that have ended use nothing but their
// place in the store, nor do those whose end is overdue at `now`.
ResourceList QuotaUsage(const api::ResourceInfo& info, const api::Message& object, WallTime now);

// What the object must say before `resources` can be counted, in upstream's words ("must specify limits.cpu
// for: c"); empty when it says all.
std::string QuotaProblem(const api::ResourceInfo& info, const api::Message& object,
                         const std::vector<std::string>& resources);

}  // namespace keelson::k8s
