#include "controlplane/scheduler/types/pod_info.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

namespace {

std::shared_ptr<const PodVolumes> VolumesOf(const corev1::Pod& pod) {
  PodVolumes out;
  for (const corev1::Volume& volume : pod.spec().volumes()) {
    const corev1::VolumeSource& source = volume.volume_source();
    if (source.has_persistent_volume_claim()) {
      out.claims.push_back({source.persistent_volume_claim().claim_name(), false});
    } else if (source.has_ephemeral()) {
      out.claims.push_back({pod.metadata().name() + "-" + volume.name(), true});
    } else if (source.has_gce_persistent_disk() || source.has_aws_elastic_block_store() || source.has_rbd() ||
               source.has_iscsi()) {
      out.disks.push_back(volume);
    }
  }
  if (out.claims.empty() && out.disks.empty()) return nullptr;
  return std::make_shared<const PodVolumes>(std::move(out));
}

// Whether the kubelet has said of resources what the spec does not: a resize, under way or done.
bool ToldOfResources(const corev1::PodStatus& status) {
  const auto told = [](const corev1::ContainerStatus& one) {
    return one.has_resources() || one.allocated_resources_size() > 0;
  };
  return status.has_resources() ||
         std::any_of(status.container_statuses().begin(), status.container_statuses().end(), told) ||
         std::any_of(status.init_container_statuses().begin(), status.init_container_statuses().end(), told);
}

}  // namespace

PodInfo::PodInfo(const corev1::Pod& pod, Vocabulary& words)
    : ns(pod.metadata().namespace_()),
      name(pod.metadata().name()),
      uid(pod.metadata().uid()),
      key(api::KeyOf(pod)),
      node_name(pod.spec().node_name()),
      nominated_node(pod.status().nominated_node_name()),
      scheduler_name(pod.spec().scheduler_name()),
      shape(ShapeOf(pod, words)),
      pod_class(ClassOf(pod, words)),
      spread(SpreadOf(pod, words)),
      volumes(VolumesOf(pod)),
      priority(shape->priority),
      terminating(k8s::IsTerminating(pod)),
      requests(shape->requests),
      non_zero_requests(shape->non_zero_requests),
      created(pod.metadata().creation_timestamp()),
      started(pod.status().start_time()),
      generation(pod.metadata().generation()) {
  for (const corev1::PodSchedulingGate& gate : pod.spec().scheduling_gates()) gates.push_back(gate.name());
  if (!node_name.empty() && ToldOfResources(pod.status())) {
    requests = Resources::From(k8s::PodRequests(pod, {.use_status = true}), words.resources);
    requests.pods = 1;
    non_zero_requests = NonZeroRequests(pod, requests);
  }
  if (const metav1::OwnerReference* owner = api::ControllerOf(pod.metadata())) {
    owner_kind = owner->kind();
    owner_name = owner->name();
    owner_uid = owner->uid();
  }
  if (const corev1::PodCondition* condition = k8s::FindCondition(pod.status(), k8s::kPodScheduled)) {
    condition_status = condition->status();
    condition_reason = condition->reason();
    condition_message = condition->message();
    condition_since = condition->last_transition_time();
  }
  if (const corev1::PodCondition* condition = k8s::FindCondition(pod.status(), k8s::kDisruptionTarget)) {
    evicted = condition->status() == "True" && condition->reason() == "PreemptionByScheduler";
  }
}

}  // namespace keelson::scheduler
