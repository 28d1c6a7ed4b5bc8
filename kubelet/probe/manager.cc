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
  Erase([&](const Key& key, const Entry& entry) {
    return entry.pod->metadata().uid() == uid && !running.count(key.container_id);
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
  entry.probe = std::make_shared<const corev1::Probe>(probe);
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
  Plan(entries_.emplace(key, std::move(entry)).first);
}

void ProbeManager::Plan(Entries::iterator entry) {
  Unplan(entry);
  entry->second.planned = entry->second.next;
  plan_.emplace(entry->second.next, &entry->first);
}

void ProbeManager::Unplan(Entries::iterator entry) {
  if (entry->second.planned) plan_.erase({*entry->second.planned, &entry->first});
  entry->second.planned.reset();
}

void ProbeManager::Erase(const std::function<bool(const Key& key, const Entry& entry)>& goes) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto at = it++;
    if (!goes(at->first, at->second)) continue;
    Unplan(at);
    entries_.erase(at);
  }
}

void ProbeManager::Remove(const corev1::Pod& pod) {
  const std::string& uid = pod.metadata().uid();
  {
    MutexLock lock(mutex_);
    dying_.erase(uid);
    Erase([&](const Key&, const Entry& entry) { return entry.pod->metadata().uid() == uid; });
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

std::vector<ProbeManager::Due> ProbeManager::Collect(SteadyTime now, SteadyTime& next) {
  std::vector<Due> due;
  while (!plan_.empty() && plan_.begin()->first <= now) {
    const auto it = entries_.find(*plan_.begin()->second);
    const auto& [key, entry] = *it;
    Unplan(it);
    if (entry.running || Waiting(key)) continue;
    if (key.kind != ProbeKind::kReadiness && dying_.count(entry.pod->metadata().uid())) continue;
    it->second.next = now + AtLeastOne(entry.probe->period_seconds(), 10);
    it->second.running = true;
    Plan(it);
    ++running_;
    due.push_back({key, entry.generation, entry.pod, entry.probe, entry.container, entry.pod_ip});
  }
  next = plan_.empty() ? now + std::chrono::hours(1) : plan_.begin()->first;
  return due;
}

void ProbeManager::StartupSucceeded(const std::string& container_id) {
  for (ProbeKind kind : {ProbeKind::kLiveness, ProbeKind::kReadiness}) {
    auto it = entries_.find({container_id, kind});
    if (it != entries_.end() && !it->second.planned) Plan(it);
  }
}

void ProbeManager::Run(std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  });
  mutex_.lock();
  while (!stopping_) {
    SteadyTime next;
    std::vector<Due> due = Collect(clock_.SteadyNow(), next);
    if (due.empty()) {
      clock_.WaitUntil(mutex_, changed_, next);
      continue;
    }
    mutex_.unlock();
    for (Due& one : due) Launch(std::make_shared<const Due>(std::move(one)), stop);
    mutex_.lock();
  }
  while (running_ > 0) changed_.wait(mutex_);  // probes under way end soon: they have been stopped too
  mutex_.unlock();
}

void ProbeManager::Launch(std::shared_ptr<const Due> due, std::stop_token stop) {
  const HandlerTarget target{due->pod->spec(), due->key.container_id, due->container, due->pod_ip};
  const seconds timeout = AtLeastOne(due->probe->timeout_seconds(), 1);
  const Stopwatch watch;
  const bool started = runner_.Start(
      due->probe->handler(), target, timeout,
      [this, due, watch, stop](const ProbeOutcome& outcome) { Done(*due, outcome, watch.Seconds(), stop); });
  if (started) return;
  executor_.Submit([this, due, target, timeout, watch, stop] {
    Done(*due, runner_.Probe(due->probe->handler(), target, timeout, stop), watch.Seconds(), stop);
  });
}

void ProbeManager::Done(const Due& due, const ProbeOutcome& outcome, double took,
                        const std::stop_token& stop) {
  bool changed = false, known = false;
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(due.key);
    // A probe that was cut short by the stop says nothing of its container.
    known = !stop.stop_requested() && it != entries_.end() && it->second.generation == due.generation;
    if (known) {
      metrics_.Count(*due.pod, due.container, due.key.kind, outcome.kind, took);
      changed = Judge(it->second, outcome);
      const bool late = !it->second.planned;
      if (late) Plan(it);
      if (changed && due.key.kind == ProbeKind::kStartup) StartupSucceeded(due.key.container_id);
      // Else the loop has nothing to do before what it waits for anyway.
      if (late || changed) changed_.notify_all();
    }
  }
  if (known) Tell(due, outcome, changed);
  MutexLock lock(mutex_);
  if (--running_ == 0 && stopping_) changed_.notify_all();  // last: after it this may be gone
}

void ProbeManager::Tell(const Due& due, const ProbeOutcome& outcome, bool changed) {
  const std::string kind = NameOf(due.key.kind);
  if (outcome.kind == ProbeOutcome::kFailure)
    event_(*due.pod, due.container, "Unhealthy", kind + " probe failed: " + outcome.output);
  else if (outcome.kind == ProbeOutcome::kUnknown)
    event_(*due.pod, due.container, "Unhealthy", kind + " probe errored: " + outcome.output);
  else if (outcome.kind == ProbeOutcome::kWarning)
    event_(*due.pod, due.container, "ProbeWarning", kind + " probe warning: " + outcome.output);
  if (changed) on_change_(due.pod->metadata().uid());
}

bool ProbeManager::Judge(Entry& entry, const ProbeOutcome& outcome) {
  entry.running = false;
  if (outcome.kind == ProbeOutcome::kUnknown) return false;
  const bool success = outcome.kind != ProbeOutcome::kFailure;
  entry.in_row = success == entry.last ? entry.in_row + 1 : 1;
  entry.last = success;
  int threshold = success ? entry.probe->success_threshold() : entry.probe->failure_threshold();
  if (threshold <= 0) threshold = success ? 1 : 3;
  if (entry.in_row < threshold || entry.result == success) return false;
  entry.result = success;
  return true;
}

}  // namespace keelson::kubelet
