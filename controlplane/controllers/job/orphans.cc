#include "controlplane/controllers/job/orphans.h"

#include "controlplane/controllers/common/controller_ref_manager.h"
#include "controlplane/controllers/job/controller.h"
#include "lib/api/meta.h"

namespace keelson::controllers {

JobOrphanController::JobOrphanController(client::RestClient api, client::InformerFactory& informers,
                                         client::EventRecorder&, Clock& clock)
    : Controller("job_orphan_pod", clock, 1),
      api_(std::move(api)),
      jobs_(informers.Get<batchv1::Job>()),
      pods_(informers.Get<corev1::Pod>()) {
  pods_.AddIndex(kByOwner, [](const corev1::Pod& pod) { return OwnerIndex(pod.metadata()); });
  jobs_.AddHandler([this](const auto& change) { OnJob(change); });
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    if (!change.new_object || !IsTracked(*change.new_object)) return;
    const metav1::OwnerReference* owner = api::ControllerOf(change.new_object->metadata());
    if (owner) {
      auto job = jobs_.Get(change.new_object->metadata().namespace_(), owner->name());
      if (job && job->metadata().uid() == owner->uid() && !IsFinished(*job)) return;
    }
    queue().Add(change.key);
  });
}

void JobOrphanController::OnJob(const client::Change<batchv1::Job>& change) {
  const bool replaced = change.old_object && change.new_object &&
                        change.old_object->metadata().uid() != change.new_object->metadata().uid();
  const batchv1::Job& gone = change.old_object ? *change.old_object : *change.new_object;
  if (change.new_object && !replaced && !IsFinished(*change.new_object)) return;
  for (const auto& pod : pods_.ByIndex(kByOwner, gone.metadata().uid())) {
    if (IsTracked(*pod)) queue().Add(api::KeyOf(*pod));
  }
}

Result<bool> JobOrphanController::IsOrphan(const client::RestClient& api, const corev1::Pod& pod) const {
  const metav1::ObjectMeta& meta = pod.metadata();
  const metav1::OwnerReference* owner = api::ControllerOf(meta);
  if (!owner) return true;
  // Pods of another controller with a finalizer of the same name.
  if (owner->kind() != "Job" || owner->api_version() != "batch/v1") return false;
  auto job = jobs_.Get(meta.namespace_(), owner->name());
  if (job && job->metadata().uid() == owner->uid()) return IsFinished(*job) && !IsManagedElsewhere(*job);
  // The store may lag behind, and an uncounted pod must keep its finalizer.
  Result<batchv1::Job> live = api.Get<batchv1::Job>(meta.namespace_(), owner->name());
  if (live) return live->metadata().uid() != owner->uid();
  if (live.error().Is(Code::kNotFound)) return true;
  return live.error();
}

Result<Requeue> JobOrphanController::Reconcile(const std::string& key, std::stop_token stop) {
  auto pod = pods_.Get(key);
  if (!pod || !IsTracked(*pod)) return Requeue{};
  const client::RestClient api = api_.With(stop);
  KEELSON_ASSIGN_OR_RETURN(bool orphan, IsOrphan(api, *pod));
  if (orphan) {
    KEELSON_RETURN_IF_ERROR(RemoveTracking(api, *pod, true));  // unless the pod was adopted meanwhile
  }
  return Requeue{};
}

}  // namespace keelson::controllers
