#include "kubelet/pod/pod_workers.h"

#include <algorithm>
#include <random>

#include "kubelet/metrics/buckets.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/base/metrics.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Our own status writes come back as updates: nothing is to be done for them. Conditions that a readiness
// gate waits for are others' business and count.
bool OnlyStatusDiffers(const corev1::Pod& a, const corev1::Pod& b) {
  if (b.spec().readiness_gates_size() > 0) return false;
  auto bare = [](metav1::ObjectMeta meta) {
    meta.clear_resource_version();
    meta.clear_managed_fields();
    return api::EncodeRaw(meta);
  };
  return bare(a.metadata()) == bare(b.metadata()) && api::EncodeRaw(a.spec()) == api::EncodeRaw(b.spec()) &&
         k8s::IsTerminal(a) == k8s::IsTerminal(b);
}

// Up to half as long again, so that the pods of a node do not all look at their volumes at once.
milliseconds Jittered(milliseconds time) {
  thread_local std::minstd_rand random(std::random_device{}());
  return time + milliseconds(std::uniform_int_distribution<int64_t>(0, time.count() / 2)(random));
}

}  // namespace

PodWorkers::PodWorkers(PodSyncer& syncer, StatusManager& statuses, Executor& executor, const Options& options,
                       Clock& clock)
    : syncer_(syncer),
      statuses_(statuses),
      executor_(executor),
      options_(options),
      queue_("pods", clock, {options.retry_first, options.retry_max}) {}

void PodWorkers::End(Entry& entry) {
  if (entry.end) return;
  entry.end = true;
  entry.stop.request_stop();  // whatever Syncing waits for, it need not
  entry.stop = std::stop_source();
}

seconds PodWorkers::GraceOf(const Entry& entry) const {
  int64_t grace = entry.pod->spec().has_termination_grace_period_seconds()
                      ? entry.pod->spec().termination_grace_period_seconds()
                      : 30;
  if (k8s::IsTerminating(*entry.pod) && entry.pod->metadata().has_deletion_grace_period_seconds())
    grace = entry.pod->metadata().deletion_grace_period_seconds();
  return Span(std::max<int64_t>(grace, 1));
}

void PodWorkers::Update(PodPtr pod) {
  const std::string uid = pod->metadata().uid();
  {
    MutexLock lock(mutex_);
    auto& entry = entries_[uid];
    if (!entry) {
      entry = std::make_shared<Entry>();
      // A pod that ended before this kubelet began has nothing to sync.
      entry->ended = k8s::IsTerminal(*pod);
    }
    if (entry->pod && !entry->gone && OnlyStatusDiffers(*entry->pod, *pod)) {
      // A phase that others made final is not taken back; other conditions may open a readiness gate.
      if (!k8s::IsTerminal(*pod)) statuses_.Reconcile(pod);
      const bool gated = pod->spec().readiness_gates_size() > 0;
      entry->pod = std::move(pod);
      if (gated) queue_.Add(uid);
      return;
    }
    Touched(*entry);
    if (entry->pod) entry->work = "update";
    if (entry->gone) CountRestart(*pod);
    entry->pod = std::move(pod);
    entry->gone = false;
    if (k8s::IsTerminating(*entry->pod) || k8s::IsTerminal(*entry->pod)) End(*entry);
    if (entry->end) {
      seconds grace = GraceOf(*entry);
      bool shorter = entry->grace && grace < *entry->grace;
      if (!entry->grace || shorter) entry->grace = grace;
      if (shorter && entry->state == State::kTerminating) {
        entry->stop.request_stop();
        entry->stop = std::stop_source();
      }
    }
  }
  queue_.Add(uid);
}

void PodWorkers::Remove(const std::string& uid) {
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(uid);
    if (it == entries_.end()) return;
    it->second->gone = true;
    End(*it->second);
    if (!it->second->grace) it->second->grace = GraceOf(*it->second);
  }
  queue_.Add(uid);
}

void PodWorkers::Touch(const std::string& uid) {
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(uid);
    if (it == entries_.end()) return;
    Touched(*it->second);
    // Its worker waits for the containers, and may for long.
    if (it->second->state == State::kTerminating && runs_ && !it->second->telling) {
      it->second->telling = true;
      ++running_;
      executor_.Submit([this, entry = it->second] { TellOfEnding(entry); });
    }
  }
  queue_.Add(uid);
}

void PodWorkers::ProbesChanged(const std::string& uid) {
  std::shared_ptr<Entry> entry;
  PodPtr pod;
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(uid);
    if (it == entries_.end()) return;
    pod = it->second->pod;
    if (runs_) {
      ++running_;
      entry = it->second;
    }
  }
  if (entry)
    executor_.Submit([this, entry, pod] {
      syncer_.TellReadiness(pod, entry->memory);
      MutexLock lock(mutex_);
      if (--running_ == 0) idle_.notify_all();
    });
  Touch(uid);
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

bool PodWorkers::Evict(const std::string& uid, PodEnding ending, seconds grace) {
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(uid);
    if (it == entries_.end() || it->second->end) return false;
    Entry& entry = *it->second;
    entry.ending = std::move(ending);
    entry.grace = grace;
    End(entry);
  }
  queue_.Add(uid);
  return true;
}

void PodWorkers::Orphan(const PodRuntimeStatus& status) {
  {
    MutexLock lock(mutex_);
    auto& entry = entries_[status.uid];
    if (entry) return;
    entry = std::make_shared<Entry>();
    auto pod = std::make_shared<corev1::Pod>();
    pod->mutable_metadata()->set_name(status.name);
    pod->mutable_metadata()->set_namespace_(status.ns);
    pod->mutable_metadata()->set_uid(status.uid);
    entry->pod = std::move(pod);
    entry->orphan = entry->gone = true;
    entry->grace = seconds(1);
    End(*entry);
  }
  queue_.Add(status.uid);
}

std::vector<PodWorkers::PodPtr> PodWorkers::Pods() const {
  MutexLock lock(mutex_);
  std::vector<PodPtr> pods;
  for (const auto& [uid, entry] : entries_)
    if (!entry->orphan) pods.push_back(entry->pod);
  return pods;
}

PodWorkers::PodPtr PodWorkers::Find(const std::string& ns, const std::string& name) const {
  MutexLock lock(mutex_);
  PodPtr found;
  for (const auto& [uid, entry] : entries_) {
    const metav1::ObjectMeta& meta = entry->pod->metadata();
    if (entry->orphan || meta.name() != name || meta.namespace_() != ns) continue;
    if (!found || meta.creation_timestamp().seconds() >= found->metadata().creation_timestamp().seconds())
      found = entry->pod;
  }
  return found;
}

void PodWorkers::Seen(const std::string& uid, std::shared_ptr<const PodRuntimeStatus> status) {
  MutexLock lock(mutex_);
  if (auto it = entries_.find(uid); it != entries_.end()) it->second->runtime = std::move(status);
}

std::shared_ptr<const PodRuntimeStatus> PodWorkers::Runtime(const std::string& uid) const {
  MutexLock lock(mutex_);
  auto it = entries_.find(uid);
  return it == entries_.end() ? nullptr : it->second->runtime;
}

std::set<std::string> PodWorkers::Uids() const {
  MutexLock lock(mutex_);
  std::set<std::string> uids;
  for (const auto& [uid, entry] : entries_) uids.insert(uid);
  return uids;
}

std::vector<PodWorkers::PodPtr> PodWorkers::Active(const std::string& except_uid) const {
  MutexLock lock(mutex_);
  std::vector<PodPtr> pods;
  for (const auto& [uid, entry] : entries_) {
    bool holds = entry->state == State::kSyncing || entry->state == State::kTerminating;
    if (uid != except_uid && holds && !entry->ended && !entry->gone && entry->memory.admitted)
      pods.push_back(entry->pod);
  }
  return pods;
}

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

void PodWorkers::Touched(Entry& entry) {
  ++entry.touched;
  entry.routine = false;
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
