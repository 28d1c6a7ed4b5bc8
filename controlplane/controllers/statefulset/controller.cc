#include "controlplane/controllers/statefulset/controller.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/common/controller_ref_manager.h"
#include "controlplane/controllers/common/first_error.h"
#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/slow_start_batch.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

// Calls `act` for all pods: concurrently in growing batches, until a batch has a failure.
Result<> ForAll(size_t count, const std::function<Result<>(size_t)>& act) {
  FirstError failure;
  size_t next = 0;
  SlowStartBatch(static_cast<int>(count), [&](int n) {
    std::atomic<int> done = 0;
    const size_t first = next;
    next += static_cast<size_t>(n);
    ParallelFor(static_cast<size_t>(n), [&](size_t i) {
      if (Result<> result = act(first + i)) {
        ++done;
      } else {
        failure.Note(result.error());
      }
    });
    return done.load();
  });
  return failure.Take();
}

void CountUnavailable(const appsv1::StatefulSet* before, const appsv1::StatefulSet* after) {
  const auto labels = [](const appsv1::StatefulSet& set) -> std::vector<std::string> {
    return {set.metadata().namespace_(), set.metadata().name(), set.spec().pod_management_policy()};
  };
  Metrics& all = TheMetrics();
  if (before && (!after || labels(*before) != labels(*after))) {
    all.statefulset_max_unavailable.Remove(labels(*before));
    all.statefulset_unavailable_replicas.Remove(labels(*before));
  }
  if (!after) return;
  all.statefulset_max_unavailable.With(labels(*after)).Set(MaxUnavailable(*after));
  all.statefulset_unavailable_replicas.With(labels(*after))
      .Set(std::max(0, after->spec().replicas() - after->status().available_replicas()));
}

}  // namespace

StatefulSetController::StatefulSetController(client::RestClient api, client::InformerFactory& informers,
                                             client::EventRecorder& events, Clock& clock)
    : Controller("statefulset", clock, 5),
      api_(std::move(api)),
      events_(events),
      sets_(informers.Get<appsv1::StatefulSet>()),
      pods_(informers.Get<corev1::Pod>()),
      revisions_(informers.Get<appsv1::ControllerRevision>()),
      claims_(informers, events) {
  pods_.AddIndex(kByOwner, [](const corev1::Pod& pod) { return OwnerIndex(pod.metadata()); });
  revisions_.AddIndex(kByOwner,
                      [](const appsv1::ControllerRevision& one) { return OwnerIndex(one.metadata()); });
  sets_.AddHandler([this](const client::Change<appsv1::StatefulSet>& change) {
    if (!change.new_object) written_.Clear(change.key);
    CountUnavailable(change.old_object.get(), change.new_object.get());
    queue().Add(change.key);
  });
  pods_.AddHandler([this](const auto& change) { OnPod(change); });
  claims_.store().AddHandler([this](const client::Change<corev1::PersistentVolumeClaim>& change) {
    if (!change.new_object) OnClaimGone(*change.old_object);
  });
}

std::optional<std::string> StatefulSetController::KeyOfOwner(const corev1::Pod& pod) const {
  const metav1::OwnerReference* owner = api::ControllerOf(pod.metadata());
  if (!owner || owner->kind() != "StatefulSet") return std::nullopt;
  std::string key = api::KeyOf(pod.metadata().namespace_(), owner->name());
  auto set = sets_.Get(key);
  if (!set || set->metadata().uid() != owner->uid()) return std::nullopt;
  return key;
}

void StatefulSetController::EnqueueMatching(const corev1::Pod& orphan) {
  for (const std::string& key : sets_.Keys()) {
    if (api::SplitKey(key).first != orphan.metadata().namespace_()) continue;
    auto set = sets_.Get(key);
    if (!set || !OrdinalOf(*set, orphan)) continue;
    auto selector = api::LabelSelector::From(set->spec().selector());
    if (selector && !selector->IsEverything() && selector->Matches(orphan.metadata().labels())) {
      queue().Add(key);
    }
  }
}

void StatefulSetController::OnPod(const client::Change<corev1::Pod>& change) {
  std::optional<std::string> owner = KeyOfOwner(change.object());
  if (owner) queue().Add(*owner);
  if (change.old_object && change.new_object) {
    std::optional<std::string> before = KeyOfOwner(*change.old_object);
    if (before && before != owner) queue().Add(*before);
  }
  if (change.new_object && !api::ControllerOf(change.new_object->metadata())) {
    EnqueueMatching(*change.new_object);
  }
}

// A new pod may wait for this claim's name.
void StatefulSetController::OnClaimGone(const corev1::PersistentVolumeClaim& claim) {
  for (const std::string& key : sets_.Keys()) {
    if (api::SplitKey(key).first != claim.metadata().namespace_()) continue;
    auto set = sets_.Get(key);
    if (!set) continue;
    for (const corev1::PersistentVolumeClaim& source : set->spec().volume_claim_templates()) {
      if (claim.metadata().name().starts_with(source.metadata().name() + "-" + set->metadata().name() +
                                              "-")) {
        queue().Add(key);
      }
    }
  }
}

Result<> StatefulSetController::FindRevisions(Sync& sync, const api::LabelSelector& selector) {
  KEELSON_ASSIGN_OR_RETURN(
      sync.revisions, ClaimObjects<appsv1::ControllerRevision>(sync.api, revisions_, sync.set, selector));
  SortRevisions(sync.revisions);
  const corev1::PodTemplateSpec& wanted = sync.set.spec().template_();
  const int64_t newest = MaxRevision(sync.revisions);
  for (RevisionPointer& revision : sync.revisions) {
    if (Restores(*revision, wanted)) sync.update = revision;
  }
  // A set that is being deleted gets no new revisions: they would have to be deleted again.
  const bool deleting = sync.set.metadata().has_deletion_timestamp();
  if (deleting && !sync.update && !sync.revisions.empty()) sync.update = sync.revisions.back();
  if (deleting && !sync.update) return {};
  if (sync.update && sync.update != sync.revisions.back() && !deleting) {
    // Rollback: an old template is the newest again.
    KEELSON_ASSIGN_OR_RETURN(sync.update, RenumberRevision(sync.api, sync.update, newest + 1));
  } else if (!sync.update) {
    const appsv1::ControllerRevision fresh = NewRevision(sync.set, wanted, newest + 1);
    int32_t collisions = sync.set.status().collision_count();
    KEELSON_ASSIGN_OR_RETURN(appsv1::ControllerRevision stored,
                             CreateRevision(
                                 sync.api, sync.set.metadata().name(), fresh, kRevisionHashLabel,
                                 [&](int32_t salt) { return RevisionHash(fresh, salt); }, collisions));
    sync.set.mutable_status()->set_collision_count(collisions);
    sync.update = std::make_shared<appsv1::ControllerRevision>(std::move(stored));
  }
  for (RevisionPointer& revision : sync.revisions) {
    if (revision->metadata().name() == sync.set.status().current_revision()) sync.current = revision;
  }
  if (!sync.current) sync.current = sync.update;
  return {};
}

Result<> StatefulSetController::RemoveOldRevisions(Sync& sync, const PodPointers& pods) {
  std::set<std::string> live = {sync.current->metadata().name(), sync.update->metadata().name()};
  for (const PodPointer& pod : pods) {
    const auto found = pod->metadata().labels().find(kPodRevisionLabel);
    if (found != pod->metadata().labels().end()) live.insert(found->second);
  }
  // The history limit applies to unused revisions.
  RevisionPointers unused = sync.revisions;
  std::erase_if(unused, [&](const RevisionPointer& one) { return live.count(one->metadata().name()) > 0; });
  const auto none_live = [](const appsv1::ControllerRevision&) { return false; };
  for (const RevisionPointer& old :
       RevisionsToCleanUp(std::move(unused), sync.set.spec().revision_history_limit(), none_live)) {
    const metav1::ObjectMeta& meta = old->metadata();
    Result<> deleted =
        sync.api.Delete<appsv1::ControllerRevision>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
    if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete old revision");
  }
  return {};
}

void StatefulSetController::Note(const Sync& sync, const char* verb, const std::string& pod,
                                 const Result<>& result) {
  std::string reason = verb;
  reason[0] = static_cast<char>(reason[0] - 'a' + 'A');
  const std::string what = fmt::format("{} Pod {} in StatefulSet {}", verb, pod, sync.set.metadata().name());
  if (result) {
    events_.Record(sync.set, "Normal", "Successful" + reason, what + " successful");
  } else {
    events_.Record(sync.set, "Warning", "Failed" + reason,
                   what + " failed error: " + result.error().message());
  }
}

Result<> StatefulSetController::CreatePod(Sync& sync, const SetView& view, int32_t ordinal) {
  const std::string& name = RevisionAt(view, ordinal);
  appsv1::StatefulSet set = sync.set;
  if (name != sync.update->metadata().name()) {
    KEELSON_ASSIGN_OR_RETURN(*set.mutable_spec()->mutable_template_(), TemplateOf(*sync.current));
  }
  const corev1::Pod pod = NewPodAt(set, ordinal, name);
  if (claims_.AnyStale(set, pod, ordinal)) return {};  // the deletion of the claim triggers a sync
  Result<> claimed = claims_.Create(sync.api, set, pod, ordinal);
  if (!claimed) {
    Note(sync, "create", pod.metadata().name(), claimed);
    return claimed;
  }
  Result<corev1::Pod> created = sync.api.Create(pod);
  if (created) {
    Note(sync, "create", pod.metadata().name(), {});
    return claims_.Settle(sync.api, set, *created, ordinal);
  }
  // The store does not show the existing pod yet.
  if (created.error().Is(Code::kAlreadyExists)) return created.error();
  if (!IsNamespaceTerminating(created.error())) Note(sync, "create", pod.metadata().name(), created.error());
  return created.error();
}

Result<> StatefulSetController::DeletePod(Sync& sync, const corev1::Pod& pod) {
  const metav1::ObjectMeta& meta = pod.metadata();
  Result<> deleted = sync.api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
  if (!deleted && deleted.error().Is(Code::kNotFound)) return {};
  Note(sync, "delete", meta.name(), deleted);
  return deleted;
}

Result<> StatefulSetController::TendPod(Sync& sync, const corev1::Pod& pod) {
  const int32_t ordinal = *OrdinalOf(sync.set, pod);
  KEELSON_RETURN_IF_ERROR(claims_.Settle(sync.api, sync.set, pod, ordinal));
  const bool stored = HasStorage(sync.set, pod, ordinal);
  if (!stored || pod.status().phase() == "Pending") {
    Result<> claimed = claims_.Create(sync.api, sync.set, pod, ordinal);
    if (!claimed) {
      Note(sync, "update", pod.metadata().name(), claimed);
      return claimed;
    }
  }
  if (stored && HasIdentity(sync.set, pod, ordinal)) return {};
  corev1::Pod changed = pod;
  Mend(sync.set, ordinal, changed);
  Result<corev1::Pod> updated = sync.api.Update(changed);
  if (updated) {
    Note(sync, "update", pod.metadata().name(), {});
    return {};
  }
  if (!updated.error().Is(Code::kConflict)) Note(sync, "update", pod.metadata().name(), updated.error());
  return updated.error();
}

Result<> StatefulSetController::Carry(Sync& sync, const SetView& view, const SetPlan& plan) {
  for (const PodPointer& pod : plan.tend) KEELSON_RETURN_IF_ERROR(TendPod(sync, *pod));
  KEELSON_RETURN_IF_ERROR(ForAll(plan.restart.size(), [&](size_t i) {
    const corev1::Pod& pod = *plan.restart[i];
    const metav1::ObjectMeta& meta = sync.set.metadata();
    const bool failed = pod.status().phase() == "Failed";
    events_.Record(sync.set, failed ? "Warning" : "Normal",
                   failed ? "RecreatingFailedPod" : "RecreatingTerminatedPod",
                   fmt::format("StatefulSet {}/{} is recreating {} Pod {}", meta.namespace_(), meta.name(),
                               failed ? "failed" : "terminated", pod.metadata().name()));
    return DeletePod(sync, pod);
  }));
  KEELSON_RETURN_IF_ERROR(
      ForAll(plan.create.size(), [&](size_t i) { return CreatePod(sync, view, plan.create[i]); }));
  for (const PodPointer& pod : plan.settle) {
    KEELSON_RETURN_IF_ERROR(claims_.Settle(sync.api, sync.set, *pod, *OrdinalOf(sync.set, *pod)));
  }
  KEELSON_RETURN_IF_ERROR(
      ForAll(plan.remove.size(), [&](size_t i) { return DeletePod(sync, *plan.remove[i]); }));
  return ForAll(plan.replace.size(), [&](size_t i) { return DeletePod(sync, *plan.replace[i]); });
}

Result<> StatefulSetController::WriteStatus(Sync& sync, const appsv1::StatefulSetStatus& status) {
  const auto stored = sets_.Get(sync.key);
  if (stored && google::protobuf::util::MessageDifferencer::Equals(stored->status(), status)) return {};
  *sync.set.mutable_status() = status;
  KEELSON_ASSIGN_OR_RETURN(sync.set, sync.api.UpdateStatus(sync.set));
  written_.WroteAt(sync.key, sync.set.metadata());
  return {};
}

Result<Requeue> StatefulSetController::Reconcile(const std::string& key, std::stop_token stop) {
  auto set = sets_.Get(key);
  if (!set) return Requeue{};
  if (!written_.IsReady(key, set->metadata())) {
    TheMetrics().statefulset_stale_sync_skips_total.With({"apps", "statefulsets"}).Increment();
    return Requeue{};
  }
  Sync sync{api_.With(stop), key, *set};
  KEELSON_ASSIGN_OR_RETURN(api::LabelSelector selector, api::LabelSelector::From(set->spec().selector()));
  if (selector.IsEverything()) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(
      PodPointers pods,
      ClaimObjects<corev1::Pod>(sync.api, pods_, *set, selector,
                                [&](const corev1::Pod& pod) { return OrdinalOf(*set, pod).has_value(); }));
  KEELSON_RETURN_IF_ERROR(FindRevisions(sync, selector));
  if (!sync.update) return Requeue{};
  const SetView view =
      ViewOf(sync.set, pods, sync.current->metadata().name(), sync.update->metadata().name(), clock().Now());
  const SetPlan plan = PlanSet(view);
  Result<> carried = Carry(sync, view, plan);
  // Write the status even after a failure.
  KEELSON_RETURN_IF_ERROR(WriteStatus(sync, NewStatus(view, plan.replace)));
  if (!carried) {
    if (IsNamespaceTerminating(carried.error())) return Requeue{};
    return carried.error();
  }
  KEELSON_RETURN_IF_ERROR(RemoveOldRevisions(sync, pods));
  return Requeue{plan.again};
}

}  // namespace keelson::controllers
