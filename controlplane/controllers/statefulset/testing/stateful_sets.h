// StatefulSets for tests.
#pragma once

#include "controlplane/controllers/statefulset/plan.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/k8s/defaulting/defaulting.h"

namespace keelson::controllers {

inline appsv1::StatefulSet StatefulSetNamed(const std::string& name, int32_t replicas) {
  appsv1::StatefulSet set;
  set.mutable_metadata()->set_name(name);
  set.mutable_metadata()->set_namespace_("default");
  appsv1::StatefulSetSpec& spec = *set.mutable_spec();
  spec.set_replicas(replicas);
  spec.set_service_name(name + "-svc");
  (*spec.mutable_selector()->mutable_match_labels())["app"] = name;
  (*spec.mutable_template_()->mutable_metadata()->mutable_labels())["app"] = name;
  *spec.mutable_template_()->mutable_spec() = PodNamed("x").spec();
  k8s::SetDefaults(set);
  return set;
}

inline appsv1::StatefulSet WithClaims(appsv1::StatefulSet set, std::vector<std::string> names,
                                      const char* when_deleted = "Retain",
                                      const char* when_scaled = "Retain") {
  for (const std::string& name : names) {
    set.mutable_spec()->add_volume_claim_templates()->mutable_metadata()->set_name(name);
  }
  auto& policy = *set.mutable_spec()->mutable_persistent_volume_claim_retention_policy();
  policy.set_when_deleted(when_deleted);
  policy.set_when_scaled(when_scaled);
  return set;
}

}  // namespace keelson::controllers
