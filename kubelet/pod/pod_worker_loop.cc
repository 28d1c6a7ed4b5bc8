// The loop of PodWorkers: runs what is due for a pod, one step at a time.
#include <algorithm>
#include <random>

#include "kubelet/metrics/buckets.h"
#include "kubelet/pod/pod_workers.h"
#include "lib/api/meta.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Up to half as long again, so that the pods of a node do not all resync at once.
milliseconds Jittered(milliseconds time) {
  thread_local std::minstd_rand random(std::random_device{}());
  return time + milliseconds(std::uniform_int_distribution<int64_t>(0, time.count() / 2)(random));
}

}  // namespace

void PodWorkers::Run(std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    accepts_tasks_ = true;
  }
  while (auto uid = queue_.Get(stop)) {
    {
      MutexLock lock(mutex_);
      ++running_tasks_;
    }
    executor_.Submit([this, uid = *uid, stop] {
      RunWorkerOnce(uid, stop);
      queue_.Done(uid);
      MutexLock lock(mutex_);
      if (--running_tasks_ == 0) idle_.notify_all();
    });
  }
  // No task is under way when this returns: the caller may destroy everything.
  MutexLock lock(mutex_);
  accepts_tasks_ = false;
  for (auto& [uid, entry] : pod_sync_statuses_) entry->cancel.request_stop();
  while (running_tasks_ > 0) idle_.wait(mutex_);
}

void PodWorkers::UpdateTerminatingStatus(const std::shared_ptr<PodSyncStatus>& entry) {
  PodPtr pod;
  std::stop_token stop;
  {
    MutexLock lock(mutex_);
    entry->status_update_queued = false;
    pod = entry->pod;
    stop = entry->cancel.get_token();
  }
  syncer_.UpdateTerminatingStatus(pod, entry->sync_state, stop);
  MutexLock lock(mutex_);
  if (--running_tasks_ == 0) idle_.notify_all();
}

void PodWorkers::RunWorkerOnce(const std::string& uid, std::stop_token stop) {
  std::shared_ptr<PodSyncStatus> entry;
  {
    MutexLock lock(mutex_);
    auto it = pod_sync_statuses_.find(uid);
    if (it == pod_sync_statuses_.end()) return;
    entry = it->second;
  }
  Stopwatch watch;
  auto next = DoWork(uid, entry);
  ObserveWorkDuration(*entry, watch.Seconds());
  if (stop.stop_requested()) return;
  if (!next) {
    if (!next.error().Is(Code::kCancelled)) {
      PodPtr pod;
      {
        MutexLock lock(mutex_);
        pod = entry->pod;  // an update may replace it at any time
      }
      log::Warn("Pod sync failed", {{"pod", api::KeyOf(*pod)}, {"err", next.error()}});
      queue_.AddRateLimited(uid);
    } else {
      queue_.Add(uid);
    }
    return;
  }
  queue_.Forget(uid);
  if (*next) queue_.AddAfter(uid, **next);
}

void PodWorkers::ObserveWorkDuration(PodSyncStatus& entry, double took) {
  static metrics::Family& duration = metrics::Histograms(
      "kubelet_pod_worker_duration_seconds",
      "Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync",
      DefaultBuckets(), {"operation_type"});
  const char* work = nullptr;
  {
    MutexLock lock(mutex_);
    work = entry.state == PodWorkerState::kSyncPod ? std::exchange(entry.next_operation, "sync") : "kill";
  }
  duration.HistogramWith({work}).Observe(took);
  if (std::string_view(work) == "create") ObserveWorkerStart(entry.since_known.Seconds() - took);
}

Result<std::optional<milliseconds>> PodWorkers::SyncPod(const std::shared_ptr<PodSyncStatus>& entry,
                                                        const PodPtr& pod, std::stop_token stop) {
  uint64_t update_count = 0;
  {
    MutexLock lock(mutex_);
    update_count = entry->update_count;
    entry->sync_state.resync_only = entry->resync_only;
  }
  auto result = syncer_.SyncPod(pod, entry->sync_state, stop);
  {
    MutexLock lock(mutex_);
    entry->runtime_status = entry->sync_state.runtime;
    entry->resync_only = result && !result->requeue_after && update_count == entry->update_count;
    if (!result) return result.error();
    if (result->terminal) {
      entry->terminal = true;
      RequestTermination(*entry);
      if (!entry->grace_period) entry->grace_period = GracePeriodOf(*entry);
    }
  }
  if (result->terminal) return std::optional<milliseconds>(milliseconds(0));
  syncer_.CollectDeadContainers(pod, entry->sync_state, stop);
  milliseconds next = Jittered(options_.sync_frequency);
  if (result->requeue_after) next = std::min(next, *result->requeue_after);
  return std::optional<milliseconds>(next);
}

Result<std::optional<milliseconds>> PodWorkers::DoWork(const std::string& uid,
                                                       const std::shared_ptr<PodSyncStatus>& entry) {
  constexpr milliseconds kNow(0);
  PodPtr pod;
  PodWorkerState state;
  bool removed;
  seconds grace(1);
  std::stop_token stop;
  std::optional<TerminationReason> reason;
  {
    MutexLock lock(mutex_);
    if (entry->state == PodWorkerState::kSyncPod && entry->termination_requested) {
      entry->state = PodWorkerState::kTerminatingPod;
    }
    pod = entry->pod;
    state = entry->state;
    removed = entry->removed;
    if (entry->grace_period) grace = *entry->grace_period;
    stop = entry->cancel.get_token();
    reason = entry->termination_reason;
  }
  if (reason) entry->sync_state.termination_reason = std::move(reason);
  switch (state) {
    case PodWorkerState::kSyncPod:
      return SyncPod(entry, pod, stop);
    case PodWorkerState::kTerminatingPod: {
      KEELSON_RETURN_IF_ERROR(syncer_.SyncTerminatingPod(pod, entry->sync_state, grace, stop));
      MutexLock lock(mutex_);
      entry->runtime_status = entry->sync_state.runtime;
      entry->state = PodWorkerState::kTerminatedPod;
      return std::optional<milliseconds>(kNow);
    }
    case PodWorkerState::kTerminatedPod: {
      KEELSON_RETURN_IF_ERROR(syncer_.SyncTerminatedPod(pod, entry->sync_state, stop));
      MutexLock lock(mutex_);
      entry->state = PodWorkerState::kFinished;
      return std::optional<milliseconds>(kNow);
    }
    case PodWorkerState::kFinished:
      break;
  }
  if (!removed) {
    statuses_.Finish(pod);
    return std::optional<milliseconds>();
  }
  KEELSON_RETURN_IF_ERROR(syncer_.RemoveFromRuntime(uid, stop));
  statuses_.Forget(uid);
  bool forgotten = false;
  {
    MutexLock lock(mutex_);
    forgotten = entry->removed && pod_sync_statuses_.erase(uid) > 0;
  }
  if (forgotten && options_.on_forgotten) options_.on_forgotten(uid);
  return std::optional<milliseconds>();
}

}  // namespace keelson::kubelet
