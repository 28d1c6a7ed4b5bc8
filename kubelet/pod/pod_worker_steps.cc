// PodWorkers' threads: what is due for a pod, one step at a time.
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

// Up to half as long again, so that the pods of a node do not all look at their volumes at once.
milliseconds Jittered(milliseconds time) {
  thread_local std::minstd_rand random(std::random_device{}());
  return time + milliseconds(std::uniform_int_distribution<int64_t>(0, time.count() / 2)(random));
}

}  // namespace

void PodWorkers::Run(std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    runs_ = true;
  }
  while (auto uid = queue_.Get(stop)) {
    {
      MutexLock lock(mutex_);
      ++running_;
    }
    executor_.Submit([this, uid = *uid, stop] {
      Reconcile(uid, stop);
      queue_.Done(uid);
      MutexLock lock(mutex_);
      if (--running_ == 0) idle_.notify_all();
    });
  }
  // Nothing is under way any more when this returns: who called may take everything down.
  MutexLock lock(mutex_);
  runs_ = false;
  for (auto& [uid, entry] : entries_) entry->stop.request_stop();
  while (running_ > 0) idle_.wait(mutex_);
}

void PodWorkers::TellOfEnding(const std::shared_ptr<Entry>& entry) {
  PodPtr pod;
  std::stop_token stop;
  {
    MutexLock lock(mutex_);
    entry->telling = false;
    pod = entry->pod;
    stop = entry->stop.get_token();
  }
  syncer_.TellOfEnding(pod, entry->memory, stop);
  MutexLock lock(mutex_);
  if (--running_ == 0) idle_.notify_all();
}

void PodWorkers::Reconcile(const std::string& uid, std::stop_token stop) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(uid);
    if (it == entries_.end()) return;
    entry = it->second;
  }
  Stopwatch watch;
  auto again = Step(uid, entry, stop);
  CountStep(*entry, watch.Seconds());
  if (stop.stop_requested()) return;
  if (!again) {
    if (!again.error().Is(Code::kCancelled)) {
      log::Warn("Pod sync failed", {{"pod", api::KeyOf(*entry->pod)}, {"error", again.error()}});
      queue_.AddRateLimited(uid);
    } else {
      queue_.Add(uid);
    }
    return;
  }
  queue_.Forget(uid);
  if (*again) queue_.AddAfter(uid, **again);
}

void PodWorkers::CountStep(Entry& entry, double took) {
  static metrics::Family& duration = metrics::Histograms(
      "kubelet_pod_worker_duration_seconds",
      "Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync",
      DefaultBuckets(), {"operation_type"});
  const char* work = nullptr;
  {
    MutexLock lock(mutex_);
    work = entry.state == State::kSyncing ? std::exchange(entry.work, "sync") : "kill";
  }
  duration.HistogramWith({work}).Observe(took);
  if (std::string_view(work) == "create") CountWorkerStart(entry.known.Seconds() - took);
}

Result<std::optional<milliseconds>> PodWorkers::SyncStep(const std::shared_ptr<Entry>& entry,
                                                         const PodPtr& pod, std::stop_token stop) {
  uint64_t touched = 0;
  {
    MutexLock lock(mutex_);
    touched = entry->touched;
    entry->memory.routine = entry->routine;
  }
  auto result = syncer_.Sync(pod, entry->memory, stop);
  {
    MutexLock lock(mutex_);
    entry->runtime = entry->memory.runtime;
    entry->routine = result && !result->again && touched == entry->touched;
    if (!result) return result.error();
    if (result->ended) {
      entry->ended = true;
      End(*entry);
      if (!entry->grace) entry->grace = GraceOf(*entry);
    }
  }
  if (result->ended) return std::optional<milliseconds>(milliseconds(0));
  syncer_.CollectGarbage(pod, entry->memory, stop);
  milliseconds again = Jittered(options_.sync_frequency);
  if (result->again) again = std::min(again, *result->again);
  return std::optional<milliseconds>(again);
}

Result<std::optional<milliseconds>> PodWorkers::Step(const std::string& uid,
                                                     const std::shared_ptr<Entry>& entry, std::stop_token) {
  constexpr milliseconds kNow(0);
  PodPtr pod;
  State state;
  bool gone;
  seconds grace(1);
  std::stop_token stop;
  std::optional<PodEnding> ending;
  {
    MutexLock lock(mutex_);
    if (entry->state == State::kSyncing && entry->end) entry->state = State::kTerminating;
    pod = entry->pod;
    state = entry->state;
    gone = entry->gone;
    if (entry->grace) grace = *entry->grace;
    stop = entry->stop.get_token();
    ending = entry->ending;
  }
  if (ending) entry->memory.ending = std::move(ending);
  switch (state) {
    case State::kSyncing:
      return SyncStep(entry, pod, stop);
    case State::kTerminating: {
      RETURN_IF_ERROR(syncer_.Terminate(pod, entry->memory, grace, stop));
      MutexLock lock(mutex_);
      entry->runtime = entry->memory.runtime;
      entry->state = State::kTerminated;
      return std::optional<milliseconds>(kNow);
    }
    case State::kTerminated: {
      RETURN_IF_ERROR(syncer_.CleanUp(pod, entry->memory, stop));
      MutexLock lock(mutex_);
      entry->state = State::kFinished;
      return std::optional<milliseconds>(kNow);
    }
    case State::kFinished:
      break;
  }
  if (!gone) {
    statuses_.Finish(pod);
    return std::optional<milliseconds>();
  }
  RETURN_IF_ERROR(syncer_.RemoveFromRuntime(uid, stop));
  statuses_.Forget(uid);
  bool forgotten = false;
  {
    MutexLock lock(mutex_);
    forgotten = entry->gone && entries_.erase(uid) > 0;
  }
  if (forgotten && options_.forgotten) options_.forgotten(uid);
  return std::optional<milliseconds>();
}

}  // namespace keelson::kubelet
