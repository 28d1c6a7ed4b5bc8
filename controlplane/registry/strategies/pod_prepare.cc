#include "controlplane/registry/strategies/pod_prepare.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace keelson::registry {
namespace {

using Keys = google::protobuf::RepeatedPtrField<std::string>;
using Labels = google::protobuf::Map<std::string, std::string>;

constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kLocalhost = "localhost/";

void AddRequirements(metav1::LabelSelector& selector, const Keys& keys, const char* op,
                     const Labels& labels) {
  for (const std::string& key : keys) {
    const auto found = labels.find(key);
    if (found == labels.end()) continue;
    metav1::LabelSelectorRequirement& requirement = *selector.add_match_expressions();
    requirement.set_key(key);
    requirement.set_operator_(op);
    requirement.add_values(found->second);
  }
}

// A term without a selector matches nothing, with or without keys.
void Merge(corev1::PodAffinityTerm& term, const Labels& labels) {
  if (!term.has_label_selector()) return;
  AddRequirements(*term.mutable_label_selector(), term.match_label_keys(), "In", labels);
  AddRequirements(*term.mutable_label_selector(), term.mismatch_label_keys(), "NotIn", labels);
}

template <typename Affinity>
void MergeAffinity(Affinity& affinity, const Labels& labels) {
  for (auto& weighted : *affinity.mutable_preferred_during_scheduling_ignored_during_execution()) {
    Merge(*weighted.mutable_pod_affinity_term(), labels);
  }
  for (auto& term : *affinity.mutable_required_during_scheduling_ignored_during_execution()) {
    Merge(term, labels);
  }
}

std::string AnnotationFor(const corev1::AppArmorProfile& profile) {
  if (profile.type() == "Unconfined") return "unconfined";
  if (profile.type() == "RuntimeDefault") return "runtime/default";
  if (profile.type() == "Localhost" && profile.has_localhost_profile()) {
    return std::string(kLocalhost) + profile.localhost_profile();
  }
  return {};
}

std::optional<corev1::AppArmorProfile> ProfileFor(const std::string& annotation) {
  corev1::AppArmorProfile profile;
  if (annotation == "unconfined") {
    profile.set_type("Unconfined");
  } else if (annotation == "runtime/default") {
    profile.set_type("RuntimeDefault");
  } else if (annotation.size() > kLocalhost.size() && annotation.starts_with(kLocalhost)) {
    profile.set_type("Localhost");
    profile.set_localhost_profile(annotation.substr(kLocalhost.size()));
  } else {
    return std::nullopt;
  }
  return profile;
}

void SyncContainer(corev1::Pod& pod, corev1::Container& container, std::vector<std::string>* warnings) {
  const corev1::PodSecurityContext& shared = pod.spec().security_context();
  auto& annotations = *pod.mutable_metadata()->mutable_annotations();
  const std::string key = std::string(kAppArmor) + container.name();
  const auto annotation = annotations.find(key);
  if (annotation == annotations.end()) {
    std::string text;
    if (container.security_context().has_app_armor_profile()) {
      text = AnnotationFor(container.security_context().app_armor_profile());
    } else if (shared.has_app_armor_profile()) {
      text = AnnotationFor(shared.app_armor_profile());
    }
    if (!text.empty()) annotations[key] = text;
    return;
  }
  if (container.security_context().has_app_armor_profile()) return;
  const std::optional<corev1::AppArmorProfile> profile = ProfileFor(annotation->second);
  const bool same = profile && shared.has_app_armor_profile() &&
                    profile->SerializeAsString() == shared.app_armor_profile().SerializeAsString();
  if (same) return;
  if (profile) *container.mutable_security_context()->mutable_app_armor_profile() = *profile;
  if (warnings) {
    warnings->push_back(fmt::format(
        "metadata.annotations[{}]: deprecated since v1.30; use the \"appArmorProfile\" field instead", key));
  }
}

}  // namespace

void MergeLabelKeys(corev1::Pod& pod) {
  const Labels& labels = pod.metadata().labels();
  corev1::PodSpec& spec = *pod.mutable_spec();
  if (spec.affinity().has_pod_affinity()) {
    MergeAffinity(*spec.mutable_affinity()->mutable_pod_affinity(), labels);
  }
  if (spec.affinity().has_pod_anti_affinity()) {
    MergeAffinity(*spec.mutable_affinity()->mutable_pod_anti_affinity(), labels);
  }
  for (corev1::TopologySpreadConstraint& constraint : *spec.mutable_topology_spread_constraints()) {
    if (constraint.has_label_selector()) {
      AddRequirements(*constraint.mutable_label_selector(), constraint.match_label_keys(), "In", labels);
    }
  }
}

void SyncAppArmor(corev1::Pod& pod, std::vector<std::string>* warnings) {
  if (pod.spec().os().name() == "windows") return;
  for (auto& container : *pod.mutable_spec()->mutable_init_containers()) {
    SyncContainer(pod, container, warnings);
  }
  for (auto& container : *pod.mutable_spec()->mutable_containers()) SyncContainer(pod, container, warnings);
}

}  // namespace keelson::registry
