// Internal to lib/k8s/validation: PodCertificateRequests.
#pragma once

#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

void RegisterPodCertificateRules(RuleTable& table);
// Keys need a domain; the total size has the same limit as annotations.
void CheckUserAnnotations(const StringMap& annotations, const Path& path, FieldErrors& errors);

}  // namespace keelson::k8s
