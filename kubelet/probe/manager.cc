#include "kubelet/probe/manager.h"

#include <algorithm>

#include "kubelet/metrics/stopwatch.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

namespace {

using std::chrono::seconds;

seconds AtLeastOne(int32_t value, int32_t fallback) { return seconds(value > 0 ? value : fallback); }

WallTime TimeOfNanos(int64_t nanos) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanos)));
}

}  // namespace

ProbeManager::ProbeManager(HandlerRunner& runner, Executor& executor, ChangeFunction on_change,
                           EventFunction event, Clock& clock)
    : runner_(runner),
      executor_(executor),
      on_change_(std::move(on_change)),
      event_(std::move(event)),
      clock_(clock),
      started_(clock.Now()) {}

void ProbeManager::Update(std::shared_ptr<const corev1::Pod> pod, const PodRuntimeStatus& runtime) {
  MutexLock lock(mutex_);
  std::set<std::string> running;
  std::vector<std::string> ips = runtime.Ips();
  if (pod->spec().host_network()) ips = {pod->status().host_ip()};
  std::string ip = ips.empty() ? "" : ips.front();
  k8s::ForEachContainer(pod->spec(), [&](const corev1::Container& container) NO_THREAD_SAFETY_ANALYSIS {
    const ContainerRecord* record = runtime.Latest(container.name());
    if (!record || record->state != cri::ContainerState::kRunning) return;
    running.insert(record->id);
    if (container.has_startup_probe())
      Ensure({record->id, ProbeKind::kStartup}, container.startup_probe(), pod, *record, ip);
    if (container.has_liveness_probe())
      Ensure({record->id, ProbeKind::kLiveness}, container.liveness_probe(), pod, *record, ip);
    if (container.has_readiness_probe())
      Ensure({record->id, ProbeKind::kReadiness}, container.readiness_probe(), pod, *record, ip);
  });
  const std::string& uid = pod->metadata().uid();
  std::erase_if(entries_, [&](const auto& item) {
    return item.second.pod->metadata().uid() == uid && !running.count(item.first.container_id);
  });
  changed_.notify_all();
}

void ProbeManager::Ensure(const Key& key, const corev1::Probe& probe,
                          const std::shared_ptr<const corev1::Pod>& pod, const ContainerRecord& record,
                          const std::string& pod_ip) {
  auto it = entries_.find(key);
  if (it != entries_.end()) {
    it->second.pod = pod;
    it->second.pod_ip = pod_ip;
    return;
  }
  Entry entry;
  entry.pod = pod;
  entry.probe = probe;
  entry.container = record.name;
  entry.pod_ip = pod_ip;
  entry.generation = next_generation_++;
  auto since = std::max(clock_.Now() - TimeOfNanos(record.started_at), WallTime::duration::zero());
  auto delay = std::max<std::chrono::nanoseconds>(seconds(probe.initial_delay_seconds()) - since, seconds(0));
  entry.next = clock_.SteadyNow() + delay;
  bool older = TimeOfNanos(record.started_at) < started_;
  if (older) {
    const corev1::ContainerStatus* known = k8s::FindContainerStatus(pod->status(), record.name);
    bool same = known && known->container_id().size() >= record.id.size() &&
                known->container_id().compare(known->container_id().size() - record.id.size(),
                                              record.id.size(), record.id) == 0;
    if (same && key.kind == ProbeKind::kStartup && known->started()) entry.result = true;
    if (same && key.kind == ProbeKind::kReadiness && known->ready()) entry.result = true;
    // Spread over a period: not all probes of a node at once after a restart of the kubelet.
    auto period = std::chrono::milliseconds(AtLeastOne(probe.period_seconds(), 10));
    entry.next += period * (entry.generation * 37 % 100) / 100;
  }
  entries_.emplace(key, std::move(entry));
}

void ProbeManager::Remove(const corev1::Pod& pod) {
  const std::string& uid = pod.metadata().uid();
  {
    MutexLock lock(mutex_);
    dying_.erase(uid);
    std::erase_if(entries_, [&](const auto& item) { return item.second.pod->metadata().uid() == uid; });
  }
  metrics_.Forget(pod);
}

void ProbeManager::StopLiveness(const std::string& uid) {
  MutexLock lock(mutex_);
  dying_.insert(uid);
}

std::optional<bool> ProbeManager::Get(ProbeKind kind, const std::string& container_id) const {
  MutexLock lock(mutex_);
  auto it = entries_.find({container_id, kind});
  return it == entries_.end() ? std::nullopt : it->second.result;
}

bool ProbeManager::Waiting(const Key& key) const {
  auto startup = entries_.find({key.container_id, ProbeKind::kStartup});
  if (key.kind == ProbeKind::kStartup)
    return startup != entries_.end() && startup->second.result.value_or(false);
  return startup != entries_.end() && !startup->second.result.value_or(false);
}

void ProbeManager::Run(std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  MutexLock lock(mutex_);
  stop_ = stop;
  while (!stop.stop_requested()) {
    SteadyTime now = clock_.SteadyNow();
    SteadyTime next = now + std::chrono::hours(1);
    for (auto& [key, entry] : entries_) {
      if (entry.running) {  // its end tells when it is late
        if (entry.next > now) next = std::min(next, entry.next);
        continue;
      }
      if (Waiting(key)) continue;
      if (key.kind != ProbeKind::kReadiness && dying_.count(entry.pod->metadata().uid())) continue;
      if (entry.next <= now) {
        entry.next = now + AtLeastOne(entry.probe.period_seconds(), 10);
        Launch(key, entry);
      }
      next = std::min(next, entry.next);
    }
    clock_.WaitUntil(mutex_, changed_, next);
  }
  while (running_ > 0) changed_.wait(mutex_);  // probes under way end soon: their stop was requested too
}

void ProbeManager::Launch(const Key& key, Entry& entry) {
  entry.running = true;
  ++running_;
  executor_.Submit([this, key, generation = entry.generation, pod = entry.pod, probe = entry.probe,
                    container = entry.container, ip = entry.pod_ip, stop = stop_] {
    HandlerTarget target{pod->spec(), key.container_id, container, ip};
    Stopwatch watch;
    const ProbeOutcome outcome =
        runner_.Probe(probe.handler(), target, AtLeastOne(probe.timeout_seconds(), 1), stop);
    Done(key, generation, outcome, watch.Seconds());
    MutexLock lock(mutex_);
    if (--running_ == 0 && stop_.stop_requested()) changed_.notify_all();
  });
}

void ProbeManager::Done(const Key& key, uint64_t generation, const ProbeOutcome& outcome, double took) {
  std::shared_ptr<const corev1::Pod> pod;
  std::string container;
  bool changed = false;
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(key);
    if (it == entries_.end() || it->second.generation != generation) return;
    Entry& entry = it->second;
    entry.running = false;
    pod = entry.pod;
    container = entry.container;
    metrics_.Count(*pod, container, key.kind, outcome.kind, took);
    if (outcome.kind != ProbeOutcome::kUnknown) {
      bool success = outcome.kind == ProbeOutcome::kSuccess;
      entry.in_row = success == entry.last ? entry.in_row + 1 : 1;
      entry.last = success;
      int threshold = success ? entry.probe.success_threshold() : entry.probe.failure_threshold();
      if (threshold <= 0) threshold = success ? 1 : 3;
      if (entry.in_row >= threshold && entry.result != success) {
        entry.result = success;
        changed = true;
      }
    }
    // Else the loop has nothing to do before what it waits for anyway.
    if (changed || entry.next <= clock_.SteadyNow()) changed_.notify_all();
  }
  if (outcome.kind == ProbeOutcome::kFailure)
    event_(*pod, container, "Unhealthy", std::string(NameOf(key.kind)) + " probe failed: " + outcome.output);
  else if (outcome.kind == ProbeOutcome::kUnknown)
    event_(*pod, container, "Unhealthy", std::string(NameOf(key.kind)) + " probe errored: " + outcome.output);
  if (changed) on_change_(pod->metadata().uid());
}

}  // namespace keelson::kubelet
