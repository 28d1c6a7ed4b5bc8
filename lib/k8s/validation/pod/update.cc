// Allowed changes to the spec of an existing pod.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "lib/k8s/object_diff.h"
#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

constexpr int64_t kMaxSeconds = std::numeric_limits<int32_t>::max();

// False: the lists cannot be compared further.
bool CheckContainerUpdates(const Containers& containers, const Containers& old, const Path& path,
                           FieldErrors& errors) {
  if (containers.size() != old.size()) {
    errors.push_back(Forbidden(path, "pod updates may not add or remove containers"));
    return false;
  }
  for (int i = 0; i < containers.size(); ++i) {
    const std::string& image = containers[i].image();
    const auto space = [](char c) { return isspace(static_cast<unsigned char>(c)) != 0; };
    if (image.empty()) {
      errors.push_back(Required(path.Index(i).Child("image")));
    } else if (space(image.front()) || space(image.back())) {
      errors.push_back(
          Invalid(path.Index(i).Child("image"), image, "must not have leading or trailing whitespace"));
    }
  }
  return true;
}

// A deadline may be added or shortened. False: further checks make no sense.
bool CheckDeadlineUpdate(const corev1::PodSpec& spec, const corev1::PodSpec& old, const Path& path,
                         FieldErrors& errors) {
  const Path field = path.Child("activeDeadlineSeconds");
  if (!spec.has_active_deadline_seconds()) {
    if (!old.has_active_deadline_seconds()) return true;
    errors.push_back(InvalidRaw(field, "null", "must not update from a positive integer to nil value"));
    return true;
  }
  const int64_t seconds = spec.active_deadline_seconds();
  if (seconds < 0 || seconds > kMaxSeconds) {
    CheckRange(seconds, 0, kMaxSeconds, field, errors);
    return false;
  }
  if (old.has_active_deadline_seconds() && old.active_deadline_seconds() < seconds) {
    errors.push_back(Invalid(field, seconds, "must be less than or equal to previous value"));
    return false;
  }
  return true;
}

// Every old toleration must stay; only its tolerationSeconds may change.
void CheckTolerationUpdate(const corev1::PodSpec& spec, const corev1::PodSpec& old, const Path& path,
                           FieldErrors& errors) {
  for (const corev1::Toleration& before : old.tolerations()) {
    const bool kept = std::any_of(spec.tolerations().begin(), spec.tolerations().end(), [&](const auto& now) {
      return now.key() == before.key() && now.operator_() == before.operator_() &&
             now.value() == before.value() && now.effect() == before.effect();
    });
    if (kept) continue;
    errors.push_back(Forbidden(path, "existing toleration can not be modified except its tolerationSeconds"));
    return;
  }
  CheckTolerations(spec.tolerations(), path, errors);
}

void CheckGateUpdate(const corev1::PodSpec& spec, const corev1::PodSpec& old, const Path& path,
                     FieldErrors& errors) {
  for (int i = 0; i < spec.scheduling_gates_size(); ++i) {
    const std::string& name = spec.scheduling_gates(i).name();
    const bool known = std::any_of(old.scheduling_gates().begin(), old.scheduling_gates().end(),
                                   [&](const auto& gate) { return gate.name() == name; });
    if (known) continue;
    errors.push_back(
        Forbidden(path.Index(i).Child("name"),
                  fmt::format("only deletion is allowed, but found new scheduling gate '{}'", name)));
  }
}

void CheckNodeSelectorUpdate(const StringMap& selector, const StringMap& old, const Path& path,
                             FieldErrors& errors) {
  const bool kept = std::all_of(old.begin(), old.end(), [&](const auto& item) {
    const auto found = selector.find(item.first);
    return found != selector.end() && found->second == item.second;
  });
  if (kept) return;
  errors.push_back(InvalidRaw(path, PrintMap(selector),
                              "only additions to spec.nodeSelector are allowed (no mutations or deletions)"));
}

template <typename List>
bool BeginsWith(const List& list, const List& prefix) {
  return list.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), list.begin(), SameMessage);
}

// A term without requirements matches nothing; adding one would make it match.
bool OnlyAdds(const corev1::NodeSelectorTerm& term, const corev1::NodeSelectorTerm& old) {
  const bool was_empty = old.match_expressions().empty() && old.match_fields().empty();
  if (was_empty) return term.match_expressions().empty() && term.match_fields().empty();
  return BeginsWith(term.match_expressions(), old.match_expressions()) &&
         BeginsWith(term.match_fields(), old.match_fields());
}

std::string PrintTerms(const google::protobuf::RepeatedPtrField<corev1::NodeSelectorTerm>& terms) {
  std::string out = "[";
  for (const corev1::NodeSelectorTerm& term : terms) {
    if (out.size() > 1) out += ',';
    out += InvalidObject(Path(""), term, "").value;
  }
  return out + "]";
}

// The node affinity of a gated pod may become stricter.
void CheckAffinityUpdate(const corev1::NodeAffinity& affinity, const corev1::NodeAffinity& old,
                         const Path& path, FieldErrors& errors) {
  if (!old.has_required_during_scheduling_ignored_during_execution()) return;
  const auto& before = old.required_during_scheduling_ignored_during_execution().node_selector_terms();
  const auto& now = affinity.required_during_scheduling_ignored_during_execution().node_selector_terms();
  const Path required = path.Child("requiredDuringSchedulingIgnoredDuringExecution");
  const Path terms = required.Child("nodeSelectorTerms");
  if (!before.empty() && before.size() != now.size()) {
    errors.push_back(InvalidRaw(terms, PrintTerms(now),
                                "no additions/deletions to non-empty NodeSelectorTerms list are allowed"));
    return;
  }
  for (int i = 0; i < before.size(); ++i) {
    if (OnlyAdds(now[i], before[i])) continue;
    errors.push_back(
        InvalidObject(terms.Index(i), now[i], "only additions are allowed (no mutations or deletions)"));
  }
}

// Checks the fields that may change while the pod is gated, and resets them in `spec`.
void CheckGated(corev1::PodSpec& spec, const corev1::PodSpec& old, const Path& path, FieldErrors& errors) {
  if (!SameMap(spec.node_selector(), old.node_selector())) {
    CheckNodeSelectorUpdate(spec.node_selector(), old.node_selector(), path.Child("nodeSelector"), errors);
    *spec.mutable_node_selector() = old.node_selector();
  }
  const corev1::NodeAffinity& now = spec.affinity().node_affinity();
  const corev1::NodeAffinity& before = old.affinity().node_affinity();
  if (spec.affinity().has_node_affinity() == old.affinity().has_node_affinity() && SameMessage(now, before)) {
    return;
  }
  CheckAffinityUpdate(now, before, path.Child("affinity").Child("nodeAffinity"), errors);
  if (old.affinity().has_node_affinity()) {
    *spec.mutable_affinity()->mutable_node_affinity() = before;
    return;
  }
  spec.mutable_affinity()->clear_node_affinity();
  const bool other = spec.affinity().has_pod_affinity() || spec.affinity().has_pod_anti_affinity();
  if (!old.has_affinity() && !other) spec.clear_affinity();
}

// `spec` with all fields that may change in any pod reset to `old`.
corev1::PodSpec WithoutAllowedChanges(const corev1::PodSpec& spec, const corev1::PodSpec& old) {
  corev1::PodSpec out = spec;
  for (int i = 0; i < out.containers_size(); ++i) {
    out.mutable_containers(i)->set_image(old.containers(i).image());
  }
  for (int i = 0; i < out.init_containers_size(); ++i) {
    out.mutable_init_containers(i)->set_image(old.init_containers(i).image());
  }
  out.clear_active_deadline_seconds();
  if (old.has_active_deadline_seconds()) out.set_active_deadline_seconds(old.active_deadline_seconds());
  *out.mutable_tolerations() = old.tolerations();
  *out.mutable_scheduling_gates() = old.scheduling_gates();
  if (spec.termination_grace_period_seconds() == 1 && old.termination_grace_period_seconds() < 0) {
    out.set_termination_grace_period_seconds(old.termination_grace_period_seconds());
  }
  return out;
}

}  // namespace

void CheckPodUpdate(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors) {
  const Path metadata("metadata"), path("spec");
  const corev1::PodSpec& spec = pod.spec();
  const corev1::PodSpec& before = old.spec();
  CheckPodMetadataAndSpec(pod, &old, errors);
  CheckPodAnnotationsUpdate(pod, old, metadata.Child("annotations"), errors);
  if (!CheckContainerUpdates(spec.containers(), before.containers(), path.Child("containers"), errors)) {
    return;
  }
  if (!CheckContainerUpdates(spec.init_containers(), before.init_containers(), path.Child("initContainers"),
                             errors)) {
    return;
  }
  if (!CheckDeadlineUpdate(spec, before, path, errors)) return;
  CheckTolerationUpdate(spec, before, path.Child("tolerations"), errors);
  CheckGateUpdate(spec, before, path.Child("schedulingGates"), errors);
  if (SameMessage(spec, before)) return;
  corev1::PodSpec rest = WithoutAllowedChanges(spec, before);
  if (!before.scheduling_gates().empty()) CheckGated(rest, before, path, errors);
  if (SameMessage(rest, before)) return;
  errors.push_back(Forbidden(
      path,
      "pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,"
      "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n" +
          ObjectDiff(before, rest, "spec")));
}

void CheckEphemeralContainersUpdate(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors) {
  const Path metadata("metadata"), spec("spec"), path = spec.Child("ephemeralContainers");
  CheckPodMetadataAndSpec(pod, &old, errors);
  CheckPodAnnotationsUpdate(pod, old, metadata.Child("annotations"), errors);
  if (old.metadata().annotations().contains("kubernetes.io/config.mirror")) {
    errors = {Forbidden(Path(""), "static pods do not support ephemeral containers")};
    return;
  }
  // Match by name: patches do not keep the order.
  for (const corev1::EphemeralContainer& before : old.spec().ephemeral_containers()) {
    const std::string& name = before.ephemeral_container_common().name();
    const auto& list = pod.spec().ephemeral_containers();
    const auto now = std::find_if(list.begin(), list.end(), [&](const auto& one) {
      return one.ephemeral_container_common().name() == name;
    });
    if (now == list.end()) {
      errors.push_back(
          Forbidden(path, fmt::format("existing ephemeral containers {} may not be removed\n", Quote(name))));
    } else if (!SameMessage(before, *now)) {
      errors.push_back(
          Forbidden(path, fmt::format("existing ephemeral containers {} may not be changed\n{}", Quote(name),
                                      ObjectDiff(before, *now, "spec.ephemeralContainers"))));
    }
  }
}

}  // namespace keelson::k8s
