// Placement and creation of daemon pods.
#include <algorithm>

#include "controlplane/controllers/common/history.h"
#include "controlplane/controllers/common/pod_control.h"
#include "controlplane/controllers/daemonset/plan.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::controllers {
namespace {

constexpr char kNodeNameField[] = "metadata.name";
constexpr char kGenerationAnnotation[] = "deprecated.daemonset.template.generation";

// Daemon pods serve the node itself: they start before it is ready, and stay when it is unhealthy.
void AddTolerations(corev1::PodSpec& spec) {
  auto add = [&](const char* key, std::string_view effect) {
    corev1::Toleration toleration;
    toleration.set_key(key);
    toleration.set_operator_("Exists");
    toleration.set_effect(std::string(effect));
    k8s::AddToleration(*spec.mutable_tolerations(), toleration);
  };
  add("node.kubernetes.io/not-ready", k8s::kNoExecute);
  add("node.kubernetes.io/unreachable", k8s::kNoExecute);
  add("node.kubernetes.io/disk-pressure", k8s::kNoSchedule);
  add("node.kubernetes.io/memory-pressure", k8s::kNoSchedule);
  add("node.kubernetes.io/pid-pressure", k8s::kNoSchedule);
  add("node.kubernetes.io/unschedulable", k8s::kNoSchedule);
  if (spec.host_network()) add("node.kubernetes.io/network-unavailable", k8s::kNoSchedule);
}

corev1::PodSpec SpecOf(const appsv1::DaemonSet& set) {
  corev1::PodSpec spec = set.spec().template_().spec();
  AddTolerations(spec);
  return spec;
}

std::string GenerationOf(const appsv1::DaemonSet& set) {
  auto it = set.metadata().annotations().find(kGenerationAnnotation);
  if (it == set.metadata().annotations().end() || it->second.empty()) return "";
  const bool number =
      std::all_of(it->second.begin(), it->second.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number ? it->second : "";
}

}  // namespace

DaemonPlacement::DaemonPlacement(const appsv1::DaemonSet& set) : spec_(SpecOf(set)), affinity_(spec_) {}

DaemonPlacement::Fit DaemonPlacement::Of(const corev1::Node& node) const {
  const std::string& name = node.metadata().name();
  if (!spec_.node_name().empty() && spec_.node_name() != name) return {};
  if (!affinity_.Matches({name, k8s::LabelSet(node.metadata().labels())})) return {};
  if (!k8s::FindUntolerated(node.spec().taints(), spec_.tolerations())) return {true, true};
  return {false, !k8s::FindUntolerated(node.spec().taints(), spec_.tolerations(), k8s::kNoExecute)};
}

corev1::Pod NewDaemonPod(const appsv1::DaemonSet& set, const std::string& node, const std::string& hash) {
  corev1::Pod pod = PodFromTemplate(set.spec().template_(), set);
  metav1::ObjectMeta& meta = *pod.mutable_metadata();
  if (const std::string generation = GenerationOf(set); !generation.empty()) {
    (*meta.mutable_labels())[kTemplateGeneration] = generation;
  }
  if (!hash.empty()) (*meta.mutable_labels())[kPodRevisionLabel] = hash;
  *pod.mutable_spec() = SpecOf(set);
  // The template's own terms were already checked for this node.
  auto& required = *pod.mutable_spec()
                        ->mutable_affinity()
                        ->mutable_node_affinity()
                        ->mutable_required_during_scheduling_ignored_during_execution();
  required.clear_node_selector_terms();
  corev1::NodeSelectorRequirement& field = *required.add_node_selector_terms()->add_match_fields();
  field.set_key(kNodeNameField);
  field.set_operator_("In");
  field.add_values(node);
  return pod;
}

std::string TargetNodeOf(const corev1::Pod& pod) {
  if (!pod.spec().node_name().empty()) return pod.spec().node_name();
  const auto& required =
      pod.spec().affinity().node_affinity().required_during_scheduling_ignored_during_execution();
  for (const corev1::NodeSelectorTerm& term : required.node_selector_terms()) {
    for (const corev1::NodeSelectorRequirement& field : term.match_fields()) {
      if (field.key() == kNodeNameField && field.operator_() == "In") {
        return field.values_size() == 1 ? field.values(0) : "";
      }
    }
  }
  return "";
}

PodsByNode GroupByNode(const PodPointers& pods) {
  PodsByNode out;
  for (const auto& pod : pods) {
    if (k8s::IsTerminal(*pod) && k8s::IsTerminating(*pod)) continue;
    std::string node = TargetNodeOf(*pod);
    if (!node.empty()) out[std::move(node)].push_back(pod);
  }
  return out;
}

bool IsUpToDate(const appsv1::DaemonSet& set, const corev1::Pod& pod, const std::string& hash) {
  auto has = [&](const char* key, const std::string& value) {
    auto it = pod.metadata().labels().find(key);
    return !value.empty() && it != pod.metadata().labels().end() && it->second == value;
  };
  return has(kPodRevisionLabel, hash) || has(kTemplateGeneration, GenerationOf(set));
}

}  // namespace keelson::controllers
