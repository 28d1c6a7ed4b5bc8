// Rules that kinds other than pods and services share: names that need more than a character set,
// addresses, conditions, webhooks, quantities. Every function appends to `errors`.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/k8s/validation/addresses.h"
#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// ---- names ----
Problems CheckWildcardDns1123Subdomain(std::string_view value);  // "*.example.com"
Problems CheckAnyName(std::string_view value);                   // no rule at all
void CheckCsiDriverName(std::string_view value, const Path& path, FieldErrors& errors);
// "example.com/path": controllers of ingress classes.
void CheckDomainPrefixedPath(std::string_view value, const Path& path, FieldErrors& errors);
// At least three segments (two for CheckFullyQualifiedDomain).
void CheckFullyQualifiedName(std::string_view value, const Path& path, FieldErrors& errors);
void CheckFullyQualifiedDomain(std::string_view value, const Path& path, FieldErrors& errors);
// "example.com/signer".
void CheckSigner(std::string_view value, const Path& path, FieldErrors& errors);
// Kubernetes' own ("kubernetes" and the like), or with a domain.
void CheckFinalizer(std::string_view value, const Path& path, FieldErrors& errors);

// ---- values ----
// Like CheckEnum(), but an empty value is NotSupported, not Required.
void CheckOneOf(std::string_view value, const std::vector<std::string_view>& supported, const Path& path,
                FieldErrors& errors);
// Prints the value in upstream's internal type (lib/k8s/internal_form.h).
FieldError InvalidInternal(const Path& path, const google::protobuf::Message& value, std::string_view detail);
FieldError DuplicateInternal(const Path& path, const google::protobuf::Message& value,
                             std::string_view detail = "");
void CheckFrozen(const google::protobuf::Message& value, const google::protobuf::Message& old,
                 const Path& path, FieldErrors& errors);
void CheckNonNegativeQuantity(const Quantity& quantity, const Path& path, FieldErrors& errors);
void CheckPositiveQuantity(const Quantity& quantity, const Path& path, FieldErrors& errors);
// The sign of a quantity: -1, 0 or 1.
int SignOf(const Quantity& quantity);
std::vector<std::string> SortedKeys(const QuantityMap& map);
std::vector<std::string> SortedKeys(const StringMap& map);
// "*" must be the only item; `what` names the items in the error.
void CheckLoneWildcard(const Strings& list, std::string_view what, const Path& path, FieldErrors& errors);
bool Contains(const Strings& list, std::string_view value);

// ---- structures ----
void CheckConditions(const google::protobuf::RepeatedPtrField<metav1::Condition>& conditions,
                     const Path& path, FieldErrors& errors);
// Resource names that a quota (CheckQuotaResource) or a limit range (CheckAnyResource) may limit.
void CheckQuotaResource(std::string_view name, const Path& path, FieldErrors& errors);
void CheckAnyResource(std::string_view name, const Path& path, FieldErrors& errors);
// Resource names that a container may request.
void CheckContainerResourceName(std::string_view name, const Path& path, FieldErrors& errors);
bool IsStandardQuotaResource(std::string_view name);
// pods, services, ...: counted, not measured.
bool IsCountedResource(std::string_view name);
void CheckResourceAmount(std::string_view name, const Quantity& quantity, const Path& path,
                         FieldErrors& errors);
// `inline_volume`: the spec is part of a VolumeAttachment.
void CheckVolumeSpec(const corev1::PersistentVolumeSpec& spec, bool inline_volume, const Path& path,
                     FieldErrors& errors);
void CheckVolumeSource(const corev1::PersistentVolumeSpec& spec, const Path& path, FieldErrors& errors);
void CheckAccessModes(const Strings& modes, const Path& path, FieldErrors& errors);

// ---- webhooks ----
void CheckWebhookUrl(std::string_view url, const Path& path, FieldErrors& errors);
void CheckWebhookService(std::string_view ns, std::string_view name, const std::string* url_path,
                         int32_t port, const Path& path, FieldErrors& errors);

}  // namespace keelson::k8s
