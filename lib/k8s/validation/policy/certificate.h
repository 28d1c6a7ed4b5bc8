// Internal to lib/k8s: rules of the certificates group's second kind.
#pragma once

#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

void RegisterPodCertificateRules(RuleTable& table);
// Keys need a domain; as long in all as annotations may be.
void CheckUserAnnotations(const StringMap& annotations, const Path& path, FieldErrors& errors);

}  // namespace keelson::k8s
