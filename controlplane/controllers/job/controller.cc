#include "controlplane/controllers/job/controller.h"

#include <atomic>

#include <fmt/format.h>

#include "controlplane/controllers/common/controller_ref_manager.h"
#include "controlplane/controllers/common/first_error.h"
#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/slow_start_batch.h"
#include "lib/base/json_quote.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

// Batches changes of pods and status for one second: a Job's pods tend to end together.
constexpr std::chrono::seconds kBatch{1};
constexpr client::BackoffOptions kRetries{std::chrono::seconds(1), std::chrono::minutes(1)};

}  // namespace

JobController::JobController(client::RestClient api, client::InformerFactory& informers,
                             client::EventRecorder& events, Clock& clock)
    : Controller("job", clock, 5, kRetries),
      api_(std::move(api)),
      events_(events),
      control_(events),
      jobs_(informers.Get<batchv1::Job>()),
      pods_(informers.Get<corev1::Pod>()),
      expectations_(clock) {
  pods_.AddIndex(kByOwner, [](const corev1::Pod& pod) { return OwnerIndex(pod.metadata()); });
  jobs_.AddHandler([this](const auto& change) { OnJob(change); });
  pods_.AddHandler([this](const auto& change) { OnPod(change); });
}

void JobController::OnJob(const client::Change<batchv1::Job>& change) {
  const bool both = change.old_object && change.new_object;
  if (!change.old_object && IsManagedElsewhere(*change.new_object)) CountManagedElsewhere(*change.new_object);
  const bool replaced = both && change.old_object->metadata().uid() != change.new_object->metadata().uid();
  if (!change.new_object || replaced) {
    expectations_.Forget(change.key);
    released_.Forget(change.key);
    backoffs_.Forget(change.key);
    written_.Clear(change.key);
  }
  if (both && !replaced &&
      change.old_object->metadata().generation() == change.new_object->metadata().generation()) {
    queue().AddAfter(change.key, kBatch);
  } else {
    queue().Add(change.key);
  }
}

std::optional<std::string> JobController::KeyOfOwner(const corev1::Pod& pod) const {
  const metav1::OwnerReference* owner = api::ControllerOf(pod.metadata());
  if (!owner || owner->kind() != "Job") return std::nullopt;
  std::string key = api::KeyOf(pod.metadata().namespace_(), owner->name());
  auto job = jobs_.Get(key);
  if (!job || job->metadata().uid() != owner->uid()) return std::nullopt;
  return key;
}

void JobController::EnqueueMatching(const corev1::Pod& orphan) {
  for (const std::string& key : jobs_.Keys()) {
    if (api::SplitKey(key).first != orphan.metadata().namespace_()) continue;
    auto job = jobs_.Get(key);
    if (!job || !job->spec().has_selector()) continue;
    auto selector = api::LabelSelector::From(job->spec().selector());
    if (selector && !selector->IsEverything() && selector->Matches(orphan.metadata().labels())) {
      queue().AddAfter(key, kBatch);
    }
  }
}

void JobController::OnPod(const client::Change<corev1::Pod>& change) {
  const corev1::Pod& pod = change.object();
  CountTrackedEnd(change.old_object.get(), change.new_object.get());
  std::optional<std::string> owner = KeyOfOwner(pod);
  if (owner) {
    if (!change.new_object || !IsTracked(pod)) released_.Observed(*owner, pod.metadata().uid());
    // A terminating pod counts as deleted: its termination may take long.
    if (!change.new_object || k8s::IsTerminating(pod)) {
      expectations_.DeletionObserved(*owner, change.key);
    } else if (!change.old_object) {
      expectations_.CreationObserved(*owner);
    }
    queue().AddAfter(*owner, kBatch);
  }
  if (change.old_object && change.new_object) {
    std::optional<std::string> before = KeyOfOwner(*change.old_object);
    if (before && before != owner) {
      released_.Observed(*before, pod.metadata().uid());
      queue().AddAfter(*before, kBatch);
    }
  }
  if (change.new_object && !k8s::IsTerminating(pod) && !api::ControllerOf(pod.metadata())) {
    EnqueueMatching(pod);
  }
}

Result<> JobController::CreatePods(Sync& sync, const PodPlan& plan) {
  expectations_.ExpectCreations(sync.key, static_cast<int>(plan.create));
  FirstError failure;
  std::atomic<int32_t> made = 0;
  size_t tried = 0;
  SlowStartBatch(static_cast<int>(plan.create), [&](int n) {
    const size_t first = tried;
    tried += static_cast<size_t>(n);
    const int32_t before = made;
    ParallelFor(static_cast<size_t>(n), [&](size_t i) {
      std::optional<int32_t> index;
      if (!plan.indexes.empty()) index = plan.indexes[first + i];
      Result<corev1::Pod> created = control_.Create(sync.api, sync.look.job, NewJobPod(sync.look, index));
      CountPodCreation(sync.look.job, sync.look.terminating > 0, static_cast<bool>(created));
      if (created) {
        ++made;
        return;
      }
      expectations_.CreationObserved(sync.key);
      if (!IsNamespaceTerminating(created.error())) failure.Note(created.error());
    });
    return made - before;
  });
  for (size_t i = tried; i < plan.create; ++i) expectations_.CreationObserved(sync.key);  // not attempted
  sync.look.active_count += made;
  return failure.Take();
}

Result<> JobController::RemovePods(Sync& sync, const PodPointers& pods, bool spare) {
  std::vector<std::string> keys;
  for (const PodPointer& pod : pods) keys.push_back(api::KeyOf(*pod));
  if (spare) expectations_.ExpectDeletions(sync.key, keys);
  FirstError failure;
  std::atomic<int32_t> removed = 0, ready = 0;
  ParallelFor(pods.size(), [&](size_t i) {
    Result<> done = spare ? RemoveTracking(sync.api, *pods[i]) : Result<>();
    if (done) done = control_.Delete(sync.api, sync.look.job, *pods[i]);
    if (!done) expectations_.DeletionObserved(sync.key, keys[i]);
    if (done || done.error().Is(Code::kNotFound)) {
      ++removed;
      if (k8s::IsReady(*pods[i])) ++ready;
    } else {
      failure.Note(done.error());
    }
  });
  sync.look.active_count -= removed;
  sync.look.terminating += removed;
  sync.look.ready -= ready;
  return failure.Take();
}

Result<> JobController::ManagePods(Sync& sync) {
  JobLook& look = sync.look;
  if (look.finish) {
    Result<> removed = RemovePods(sync, look.active, false);
    // Pods may exist that the store does not show yet: the Job cannot finish before they are handled.
    if (look.active_count > 0 || !sync.satisfied) look.finish.reset();
    return removed;
  }
  Result<> managed;
  if (sync.satisfied) sync.action = SyncAction::kTracking;
  const bool manage = sync.satisfied && !look.job.metadata().has_deletion_timestamp();
  if (manage) {
    const PodPlan plan = PlanPods(look);
    if (!plan.remove.empty()) {
      sync.action = SyncAction::kPodsDeleted;
      managed = RemovePods(sync, plan.remove, true);
    }
    if (plan.create > 0) {
      sync.action = SyncAction::kPodsCreated;
      managed = CreatePods(sync, plan);
    }
    if (plan.wait) sync.Again(*plan.wait);
  }
  sync.suspended = Settle(look, manage);
  return managed;
}

Result<> JobController::WriteStatus(Sync& sync) {
  KEELSON_ASSIGN_OR_RETURN(sync.look.job, sync.api.UpdateStatus(sync.look.job));
  sync.look.job.mutable_status()->mutable_uncounted_terminated_pods();
  written_.WroteAt(sync.key, sync.look.job.metadata());
  return {};
}

Result<> JobController::ReleasePods(Sync& sync, Tally& tally) {
  std::set<std::string> uids;
  for (const PodPointer& pod : tally.release) uids.insert(pod->metadata().uid());
  released_.Expect(sync.key, uids);
  FirstError failure;
  Mutex mutex;
  ParallelFor(tally.release.size(), [&](size_t i) {
    const std::string& uid = tally.release[i]->metadata().uid();
    if (Result<> removed = RemoveTracking(sync.api, *tally.release[i]); !removed) {
      released_.Observed(sync.key, uid);
      failure.Note(removed.error());
      return;
    }
    MutexLock lock(mutex);
    tally.tracked.erase(uid);
  });
  return failure.Take();
}

Result<> JobController::Record(Sync& sync) {
  JobLook& look = sync.look;
  Tally tally = CountEnded(look);
  if (tally.changed || !sync.suspended.empty()) {
    KEELSON_RETURN_IF_ERROR(WriteStatus(sync));
    if (!sync.suspended.empty()) {
      events_.Record(look.job, "Normal", sync.suspended,
                     sync.suspended == "Suspended" ? "Job suspended" : "Job resumed");
    }
  }
  backoffs_.Set(sync.key, look.backoff);
  Result<> released = ReleasePods(sync, tally);
  if (released) CountPolicyActions(tally.policy_actions);
  bool changed = SettleCounted(*look.job.mutable_status(), tally.tracked);
  const bool finished = released && Finish(look, tally);
  if (changed || finished) KEELSON_RETURN_IF_ERROR(WriteStatus(sync));
  if (finished) NoteEnd(look.job, *look.finish);
  return released;
}

void JobController::NoteEnd(const batchv1::Job& job, const batchv1::JobCondition& end) {
  CountFinished(job, end);
  if (end.type() == "Failed") {
    events_.Record(job, "Warning", end.reason(), end.message());
    return;
  }
  if (job.spec().has_completions() && job.status().succeeded() > job.spec().completions()) {
    events_.Record(job, "Warning", "TooManySucceededPods",
                   "Too many succeeded pods running after completion count reached");
  }
  events_.Record(job, "Normal", "Completed", "Job completed");
}

Result<Requeue> JobController::Reconcile(const std::string& key, std::stop_token stop) {
  auto job = jobs_.Get(key);
  if (!job || IsManagedElsewhere(*job)) return Requeue{};
  if (IsFinished(*job)) {
    backoffs_.Forget(key);
    return Requeue{};
  }
  if (!written_.IsReady(key, job->metadata())) {
    TheMetrics().job_stale_sync_skips_total.With({"batch", "jobs"}).Increment();
    return Requeue{};
  }
  const client::RestClient api = api_.With(stop);
  KEELSON_ASSIGN_OR_RETURN(api::LabelSelector selector, api::LabelSelector::From(job->spec().selector()));
  // Read before the pods: later changes are for the next sync.
  const bool satisfied = expectations_.Satisfied(key);
  std::set<std::string> released = released_.Of(key);
  KEELSON_ASSIGN_OR_RETURN(PodPointers pods,
                           ClaimObjects<corev1::Pod>(api, pods_, *job, selector, nullptr, kJobTracking));
  Sync sync{api, key, LookAt(*job, std::move(pods), std::move(released), backoffs_.Of(key), clock().Now()),
            satisfied};
  const SteadyTime begin = clock().SteadyNow();
  Result<> managed = ManagePods(sync);
  Result<> recorded = Record(sync);
  CountSync(*job, sync.action, static_cast<bool>(managed) && static_cast<bool>(recorded),
            clock().SteadyNow() - begin);
  if (!recorded) return recorded.error();
  CountEndedPods(*job, sync.look.job);
  if (!managed) return managed.error();
  // A Job past its deadline is already failing; that continues with its pods.
  const auto deadline = DeadlineAfter(sync.look);
  if (deadline && deadline->count() > 0) sync.Again(*deadline);
  return sync.again;
}

Result<> RemoveTracking(const client::RestClient& api, const corev1::Pod& pod, bool unchanged) {
  if (!IsTracked(pod)) return {};
  const metav1::ObjectMeta& meta = pod.metadata();
  const std::string version =
      unchanged ? fmt::format(R"(,"resourceVersion":{})", JsonQuoted(meta.resource_version())) : "";
  Result<corev1::Pod> patched = api.Patch<corev1::Pod>(
      meta.namespace_(), meta.name(), client::PatchType::kStrategicMerge,
      fmt::format(R"({{"metadata":{{"$deleteFromPrimitiveList/finalizers":[{}],"uid":{}{}}}}})",
                  JsonQuoted(kJobTracking), JsonQuoted(meta.uid()), version));
  if (patched || patched.error().Is(Code::kNotFound)) return {};
  return patched.error().Wrap("remove tracking finalizer");
}

}  // namespace keelson::controllers
