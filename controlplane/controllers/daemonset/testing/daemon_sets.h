// DaemonSets for tests.
#pragma once

#include <string>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/k8s/defaulting/defaulting.h"

namespace keelson::controllers {

inline appsv1::DaemonSet DaemonSetNamed(const std::string& name, const std::string& image = "v1") {
  appsv1::DaemonSet set;
  set.mutable_metadata()->set_name(name);
  set.mutable_metadata()->set_namespace_("default");
  appsv1::DaemonSetSpec& spec = *set.mutable_spec();
  (*spec.mutable_selector()->mutable_match_labels())["app"] = name;
  (*spec.mutable_template_()->mutable_metadata()->mutable_labels())["app"] = name;
  *spec.mutable_template_()->mutable_spec() = PodNamed("x").spec();
  spec.mutable_template_()->mutable_spec()->mutable_containers(0)->set_image(image);
  k8s::SetDefaults(set);
  return set;
}

inline void AddTaint(corev1::Node& node, const std::string& key, const std::string& effect) {
  corev1::Taint& taint = *node.mutable_spec()->add_taints();
  taint.set_key(key);
  taint.set_effect(effect);
}

}  // namespace keelson::controllers
