#include "kubelet/pod/pod_workers.h"

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

using std::chrono::seconds;

namespace {

// The kubelet's own status writes come back as updates, which need no sync. Where the pod has readiness gates,
// a changed condition may open one.
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

void PodWorkers::RequestTermination(PodSyncStatus& entry) {
  if (entry.termination_requested) return;
  entry.termination_requested = true;
  entry.cancel.request_stop();  // SyncPod need not finish what it waits for
  entry.cancel = std::stop_source();
}

seconds PodWorkers::GracePeriodOf(const PodSyncStatus& entry) const {
  int64_t grace = entry.pod->spec().has_termination_grace_period_seconds()
                      ? entry.pod->spec().termination_grace_period_seconds()
                      : 30;
  if (k8s::IsTerminating(*entry.pod) && entry.pod->metadata().has_deletion_grace_period_seconds()) {
    grace = entry.pod->metadata().deletion_grace_period_seconds();
  }
  return Span(std::max<int64_t>(grace, 1));
}

void PodWorkers::UpdatePod(PodPtr pod) {
  const std::string uid = pod->metadata().uid();
  {
    MutexLock lock(mutex_);
    auto& entry = pod_sync_statuses_[uid];
    if (!entry) {
      entry = std::make_shared<PodSyncStatus>();
      // A pod that ended before this kubelet began has nothing to sync.
      entry->terminal = k8s::IsTerminal(*pod);
    }
    if (entry->pod && !entry->removed && OnlyStatusDiffers(*entry->pod, *pod)) {
      // A final phase that another client has set stays; other conditions may open a readiness gate.
      if (!k8s::IsTerminal(*pod)) statuses_.Reconcile(pod);
      const bool gated = pod->spec().readiness_gates_size() > 0;
      entry->pod = std::move(pod);
      if (gated) queue_.Add(uid);
      return;
    }
    MarkUpdated(*entry);
    if (entry->pod) entry->next_operation = "update";
    if (entry->removed) CountRestartedPod(*pod);
    entry->pod = std::move(pod);
    entry->removed = false;
    if (k8s::IsTerminating(*entry->pod) || k8s::IsTerminal(*entry->pod)) RequestTermination(*entry);
    if (entry->termination_requested) {
      seconds grace = GracePeriodOf(*entry);
      bool shorter = entry->grace_period && grace < *entry->grace_period;
      if (!entry->grace_period || shorter) entry->grace_period = grace;
      if (shorter && entry->state == PodWorkerState::kTerminatingPod) {
        entry->cancel.request_stop();
        entry->cancel = std::stop_source();
      }
    }
  }
  queue_.Add(uid);
}

void PodWorkers::RemovePod(const std::string& uid) {
  {
    MutexLock lock(mutex_);
    auto it = pod_sync_statuses_.find(uid);
    if (it == pod_sync_statuses_.end()) return;
    it->second->removed = true;
    RequestTermination(*it->second);
    if (!it->second->grace_period) it->second->grace_period = GracePeriodOf(*it->second);
  }
  queue_.Add(uid);
}

void PodWorkers::MarkUpdated(PodSyncStatus& entry) {
  ++entry.update_count;
  entry.resync_only = false;
}

void PodWorkers::RequestSync(const std::string& uid) {
  {
    MutexLock lock(mutex_);
    auto it = pod_sync_statuses_.find(uid);
    if (it == pod_sync_statuses_.end()) return;
    MarkUpdated(*it->second);
    // The worker waits for the containers, perhaps for long: another task updates the status meanwhile.
    if (it->second->state == PodWorkerState::kTerminatingPod && accepts_tasks_ &&
        !it->second->status_update_queued) {
      it->second->status_update_queued = true;
      ++running_tasks_;
      executor_.Submit([this, entry = it->second] { UpdateTerminatingStatus(entry); });
    }
  }
  queue_.Add(uid);
}

void PodWorkers::ProbeResultsChanged(const std::string& uid) {
  std::shared_ptr<PodSyncStatus> entry;
  PodPtr pod;
  {
    MutexLock lock(mutex_);
    auto it = pod_sync_statuses_.find(uid);
    if (it == pod_sync_statuses_.end()) return;
    pod = it->second->pod;
    if (accepts_tasks_) {
      ++running_tasks_;
      entry = it->second;
    }
  }
  if (entry) {
    executor_.Submit([this, entry, pod] {
      syncer_.UpdateReadinessStatus(pod, entry->sync_state);
      MutexLock lock(mutex_);
      if (--running_tasks_ == 0) idle_.notify_all();
    });
  }
  RequestSync(uid);
}

bool PodWorkers::EvictPod(const std::string& uid, TerminationReason reason, seconds grace) {
  {
    MutexLock lock(mutex_);
    auto it = pod_sync_statuses_.find(uid);
    if (it == pod_sync_statuses_.end() || it->second->termination_requested) return false;
    PodSyncStatus& entry = *it->second;
    entry.termination_reason = std::move(reason);
    entry.grace_period = grace;
    RequestTermination(entry);
  }
  queue_.Add(uid);
  return true;
}

bool PodWorkers::IsPodFinished(const std::string& uid) const {
  MutexLock lock(mutex_);
  auto it = pod_sync_statuses_.find(uid);
  return it == pod_sync_statuses_.end() || it->second->state == PodWorkerState::kFinished;
}

void PodWorkers::TerminateRuntimePod(const PodRuntimeStatus& status) {
  {
    MutexLock lock(mutex_);
    auto& entry = pod_sync_statuses_[status.uid];
    if (entry) return;
    entry = std::make_shared<PodSyncStatus>();
    auto pod = std::make_shared<corev1::Pod>();
    pod->mutable_metadata()->set_name(status.name);
    pod->mutable_metadata()->set_namespace_(status.ns);
    pod->mutable_metadata()->set_uid(status.uid);
    entry->pod = std::move(pod);
    entry->runtime_only = entry->removed = true;
    entry->grace_period = seconds(1);
    RequestTermination(*entry);
  }
  queue_.Add(status.uid);
}

std::vector<PodWorkers::PodPtr> PodWorkers::Pods() const {
  MutexLock lock(mutex_);
  std::vector<PodPtr> pods;
  for (const auto& [uid, entry] : pod_sync_statuses_) {
    if (!entry->runtime_only) pods.push_back(entry->pod);
  }
  return pods;
}

PodWorkers::PodPtr PodWorkers::Find(const std::string& ns, const std::string& name) const {
  MutexLock lock(mutex_);
  PodPtr found;
  for (const auto& [uid, entry] : pod_sync_statuses_) {
    const metav1::ObjectMeta& meta = entry->pod->metadata();
    if (entry->runtime_only || meta.name() != name || meta.namespace_() != ns) continue;
    if (!found || meta.creation_timestamp().seconds() >= found->metadata().creation_timestamp().seconds()) {
      found = entry->pod;
    }
  }
  return found;
}

void PodWorkers::SetRuntimeStatus(const std::string& uid, std::shared_ptr<const PodRuntimeStatus> status) {
  MutexLock lock(mutex_);
  if (auto it = pod_sync_statuses_.find(uid); it != pod_sync_statuses_.end()) {
    it->second->runtime_status = std::move(status);
  }
}

std::shared_ptr<const PodRuntimeStatus> PodWorkers::RuntimeStatus(const std::string& uid) const {
  MutexLock lock(mutex_);
  auto it = pod_sync_statuses_.find(uid);
  return it == pod_sync_statuses_.end() ? nullptr : it->second->runtime_status;
}

std::set<std::string> PodWorkers::Uids() const {
  MutexLock lock(mutex_);
  std::set<std::string> uids;
  for (const auto& [uid, entry] : pod_sync_statuses_) uids.insert(uid);
  return uids;
}

std::vector<PodWorkers::PodPtr> PodWorkers::ActivePods(const std::string& except_uid) const {
  MutexLock lock(mutex_);
  std::vector<PodPtr> pods;
  for (const auto& [uid, entry] : pod_sync_statuses_) {
    bool holds = entry->state == PodWorkerState::kSyncPod || entry->state == PodWorkerState::kTerminatingPod;
    if (uid != except_uid && holds && !entry->terminal && !entry->removed && entry->sync_state.admitted) {
      pods.push_back(entry->pod);
    }
  }
  return pods;
}

}  // namespace keelson::kubelet
