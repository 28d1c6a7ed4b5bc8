#include "kubelet/pod/pod_workers.h"

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

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

void PodWorkers::Touched(Entry& entry) {
  ++entry.touched;
  entry.routine = false;
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

bool PodWorkers::CleanedUp(const std::string& uid) const {
  MutexLock lock(mutex_);
  auto it = entries_.find(uid);
  return it == entries_.end() || it->second->state == State::kFinished;
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

}  // namespace keelson::kubelet
