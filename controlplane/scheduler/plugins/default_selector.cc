#include "controlplane/scheduler/plugins/default_selector.h"

#include "lib/api/selector.h"

namespace keelson::scheduler {

namespace {

constexpr char kByNamespace[] = "namespace";

}  // namespace

InformerDefaultSelectors::InformerDefaultSelectors(client::InformerFactory& informers)
    : services_(informers.Get<corev1::Service>()),
      replication_controllers_(informers.Get<corev1::ReplicationController>()),
      replica_sets_(informers.Get<appsv1::ReplicaSet>()),
      stateful_sets_(informers.Get<appsv1::StatefulSet>()) {
  services_.AddIndex(kByNamespace, [](const corev1::Service& service) {
    return std::vector{service.metadata().namespace_()};
  });
  // Only a change of the selector matters.
  services_.AddHandler([this](const client::Change<corev1::Service>& c) {
    const bool same = c.old_object && c.new_object &&
                      c.old_object->spec().selector().size() == c.new_object->spec().selector().size() &&
                      api::LabelSelector::FromMap(c.old_object->spec().selector()).ToString() ==
                          api::LabelSelector::FromMap(c.new_object->spec().selector()).ToString();
    if (!same) ++epoch_;
  });
  // The selectors of these are immutable.
  replica_sets_.AddHandler([this](const client::Change<appsv1::ReplicaSet>& c) { epoch_ += !c.old_object; });
  stateful_sets_.AddHandler(
      [this](const client::Change<appsv1::StatefulSet>& c) { epoch_ += !c.old_object; });
  replication_controllers_.AddHandler(
      [this](const client::Change<corev1::ReplicationController>& c) { epoch_ += !c.old_object; });
}

std::optional<metav1::LabelSelector> InformerDefaultSelectors::DefaultSelector(const PodInfo& pod) const {
  metav1::LabelSelector out;
  bool any = false;
  const auto merge = [&](const auto& labels) {
    for (const auto& [key, value] : labels) (*out.mutable_match_labels())[key] = value;
    any = true;
  };
  for (const auto& service : services_.ByIndex(kByNamespace, pod.ns)) {
    if (service->spec().selector().empty()) continue;
    if (!api::LabelSelector::FromMap(service->spec().selector()).Matches(pod.pod_class->labels)) continue;
    merge(service->spec().selector());
  }
  const auto add = [&](const auto& owner) {
    if (!owner || owner->metadata().uid() != pod.owner_uid) return;
    merge(owner->spec().selector().match_labels());
    for (const auto& expression : owner->spec().selector().match_expressions()) {
      *out.add_match_expressions() = expression;
    }
  };
  if (pod.owner_kind == "ReplicaSet") add(replica_sets_.Get(pod.ns, pod.owner_name));
  if (pod.owner_kind == "StatefulSet") add(stateful_sets_.Get(pod.ns, pod.owner_name));
  if (pod.owner_kind == "ReplicationController") {
    const auto owner = replication_controllers_.Get(pod.ns, pod.owner_name);
    if (owner && owner->metadata().uid() == pod.owner_uid) merge(owner->spec().selector());
  }
  if (!any || (out.match_labels().empty() && out.match_expressions().empty())) return std::nullopt;
  return out;
}

}  // namespace keelson::scheduler
