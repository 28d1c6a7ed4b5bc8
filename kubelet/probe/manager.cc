#include "kubelet/probe/manager.h"

#include <algorithm>

#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

using std::chrono::seconds;

// Probes over sockets are made some at a time: one alone finds every cache cold, and takes twice the CPU.
using Quarters = std::chrono::duration<int64_t, std::ratio<1, 4>>;  // of a second

constexpr int kTries = 3;  // of a probe that cannot be made

seconds AtLeastOne(int32_t value, int32_t fallback) { return seconds(value > 0 ? value : fallback); }

WallTime TimeOfNanos(int64_t nanos) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanos)));
}

// When a probe that is made at `now` is due again. Those that take no thread keep to the quarters of a
// second.
SteadyTime NextOf(const corev1::Probe& probe, SteadyTime now) {
  const SteadyTime next = now + AtLeastOne(probe.period_seconds(), 10);
  const corev1::ProbeHandler& handler = probe.handler();
  const bool cheap =
      handler.has_tcp_socket() || (handler.has_http_get() && handler.http_get().scheme() != "HTTPS");
  return cheap ? SteadyTime(std::chrono::round<Quarters>(next.time_since_epoch())) : next;
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

void ProbeManager::Update(std::shared_ptr<const corev1::Pod> pod, const PodRuntimeStatus& runtime,
                          const std::vector<std::string>& node_ips) {
  MutexLock lock(mutex_);
  std::set<std::string> running;
  const std::vector<std::string> ips = PodIps(pod->spec(), runtime, node_ips);
  const std::string ip = ips.empty() ? "" : ips.front();
  k8s::ForEachContainer(
      pod->spec(), [&](const corev1::Container& container) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
        const ContainerRecord* record = runtime.Latest(container.name());
        if (!record || record->state != cri::ContainerState::kRunning) return;
        running.insert(record->id);
        if (container.has_startup_probe()) {
          Ensure({record->id, ProbeKind::kStartup}, container.startup_probe(), pod, *record, ip);
        }
        if (container.has_liveness_probe()) {
          Ensure({record->id, ProbeKind::kLiveness}, container.liveness_probe(), pod, *record, ip);
        }
        if (container.has_readiness_probe()) {
          Ensure({record->id, ProbeKind::kReadiness}, container.readiness_probe(), pod, *record, ip);
        }
      });
  const std::string& uid = pod->metadata().uid();
  Erase([&](const Entry& entry) {
    return entry.pod->metadata().uid() == uid && !running.count(entry.key.container_id);
  });
  changed_.notify_all();
}

void ProbeManager::Ensure(const Key& key, const corev1::Probe& probe,
                          const std::shared_ptr<const corev1::Pod>& pod, const ContainerRecord& record,
                          const std::string& pod_ip) {
  std::shared_ptr<Entry>& entry = entries_[key];
  const bool known = entry != nullptr;
  if (!known) {
    entry = std::make_shared<Entry>(Entry{
        .key = key,
        .probe = std::make_shared<const corev1::Probe>(probe),
        .container = record.name,
        .startup = key.kind == ProbeKind::kStartup ? nullptr : Find(key.container_id, ProbeKind::kStartup),
        .labels = ProbeMetrics::Labels(*pod, record.name, key.kind)});
  }
  entry->pod = pod;
  if (!known || entry->pod_ip != pod_ip) {
    entry->pod_ip = pod_ip;
    entry->prepared =
        runner_.Prepare(entry->probe->handler(), {pod->spec(), key.container_id, record.name, pod_ip});
  }
  if (known) return;
  auto since = std::max(clock_.Now() - TimeOfNanos(record.started_at), WallTime::duration::zero());
  auto delay = std::max<std::chrono::nanoseconds>(seconds(probe.initial_delay_seconds()) - since, seconds(0));
  entry->next = clock_.SteadyNow() + delay;
  bool older = TimeOfNanos(record.started_at) < started_;
  if (older) {
    const corev1::ContainerStatus* told = k8s::FindContainerStatus(pod->status(), record.name);
    const bool same = told && told->container_id().ends_with(record.id);
    if (same && key.kind == ProbeKind::kStartup && told->started()) entry->result = true;
    if (same && key.kind == ProbeKind::kReadiness && told->ready()) entry->result = true;
    // Spread over a period: not all probes of a node at once after a restart of the kubelet.
    auto period = std::chrono::milliseconds(AtLeastOne(probe.period_seconds(), 10));
    entry->next += period * (++made_ * 37 % 100) / 100;
  }
  Plan(entry);
}

std::shared_ptr<ProbeManager::Entry> ProbeManager::Find(const std::string& container_id,
                                                        ProbeKind kind) const {
  auto it = entries_.find({container_id, kind});
  return it == entries_.end() ? nullptr : it->second;
}

void ProbeManager::Plan(const std::shared_ptr<Entry>& entry) {
  Unplan(entry);
  entry->planned = entry->next;
  plan_.emplace(entry->next, entry);
}

void ProbeManager::Unplan(const std::shared_ptr<Entry>& entry) {
  if (entry->planned) plan_.erase({*entry->planned, entry});
  entry->planned.reset();
}

void ProbeManager::Erase(const std::function<bool(const Entry& entry)>& goes) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto at = it++;
    if (!goes(*at->second)) continue;
    at->second->gone = true;
    Unplan(at->second);
    entries_.erase(at);
  }
}

void ProbeManager::Remove(const corev1::Pod& pod) {
  const std::string& uid = pod.metadata().uid();
  {
    MutexLock lock(mutex_);
    dying_.erase(uid);
    Erase([&](const Entry& entry) { return entry.pod->metadata().uid() == uid; });
  }
  metrics_.Forget(pod);
}

void ProbeManager::StopLiveness(const std::string& uid) {
  MutexLock lock(mutex_);
  dying_.insert(uid);
}

std::optional<bool> ProbeManager::Get(ProbeKind kind, const std::string& container_id) const {
  MutexLock lock(mutex_);
  const auto entry = Find(container_id, kind);
  return entry ? entry->result : std::nullopt;
}

bool ProbeManager::Waiting(const Entry& entry) {
  if (entry.key.kind == ProbeKind::kStartup) return entry.result.value_or(false);
  return entry.startup && !entry.startup->result.value_or(false);
}

std::vector<ProbeManager::Due> ProbeManager::Collect(SteadyTime now, SteadyTime& next,
                                                     const std::stop_token& stop) {
  std::vector<Due> due;
  while (!plan_.empty() && plan_.begin()->first <= now) {
    const std::shared_ptr<Entry> entry = plan_.begin()->second;
    Unplan(entry);
    if (entry->running || Waiting(*entry)) continue;
    if (entry->key.kind != ProbeKind::kReadiness && !entry->result.value_or(true)) continue;
    if (entry->key.kind != ProbeKind::kReadiness && dying_.count(entry->pod->metadata().uid())) continue;
    entry->next = NextOf(*entry->probe, now);
    entry->running = true;
    Plan(entry);
    ++running_;
    due.push_back({entry, entry->pod, entry->pod_ip, entry->prepared, stop});
  }
  next = plan_.empty() ? now + std::chrono::hours(1) : plan_.begin()->first;
  return due;
}

void ProbeManager::StartupSucceeded(const std::string& container_id) {
  for (ProbeKind kind : {ProbeKind::kLiveness, ProbeKind::kReadiness}) {
    const auto entry = Find(container_id, kind);
    if (entry && !entry->planned) Plan(entry);
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
    std::vector<Due> due = Collect(clock_.SteadyNow(), next, stop);
    if (due.empty()) {
      clock_.WaitUntil(mutex_, changed_, next);
      continue;
    }
    mutex_.unlock();
    for (Due& one : due) Launch(std::make_shared<const Due>(std::move(one)));
    mutex_.lock();
  }
  while (running_ > 0) changed_.wait(mutex_);  // probes under way end soon: they have been stopped too
  mutex_.unlock();
}

void ProbeManager::Launch(std::shared_ptr<const Due> due) {
  const seconds timeout = AtLeastOne(due->entry->probe->timeout_seconds(), 1);
  if (due->prepared) {
    return due->prepared->Make(timeout, [this, due](const ProbeOutcome& outcome) { Made(due, outcome); });
  }
  executor_.Submit([this, due, timeout] {
    const Entry& entry = *due->entry;
    const HandlerTarget target{due->pod->spec(), entry.key.container_id, entry.container, due->pod_ip};
    Made(due, runner_.Probe(entry.probe->handler(), target, timeout, due->stop));
  });
}

void ProbeManager::Made(const std::shared_ptr<const Due>& due, const ProbeOutcome& outcome) {
  if (outcome.kind != ProbeOutcome::kUnknown || due->tries == kTries || due->stop.stop_requested()) {
    return Done(*due, outcome);
  }
  auto again = std::make_shared<Due>(*due);
  ++again->tries;
  Launch(std::move(again));
}

void ProbeManager::Done(const Due& due, const ProbeOutcome& outcome) {
  Entry& entry = *due.entry;
  bool changed = false, known = false;
  {
    MutexLock lock(mutex_);
    // A probe that was cut short by the stop says nothing of its container.
    known = !due.stop.stop_requested() && !entry.gone;
    if (known) {
      if (outcome.kind != ProbeOutcome::kUnknown) {
        metrics_.Count(entry.labels, outcome.kind, due.watch.Seconds());
      }
      changed = Judge(entry, outcome);
      const bool late = !entry.planned;
      if (late) Plan(due.entry);
      if (changed && entry.key.kind == ProbeKind::kStartup) StartupSucceeded(entry.key.container_id);
      // Else the loop has nothing to do before what it waits for anyway.
      if (late || changed) changed_.notify_all();
    }
  }
  if (known) Tell(due, outcome, changed);
  MutexLock lock(mutex_);
  if (--running_ == 0 && stopping_) changed_.notify_all();  // last: after it this may be gone
}

void ProbeManager::Tell(const Due& due, const ProbeOutcome& outcome, bool changed) {
  const std::string kind = NameOf(due.entry->key.kind);
  if (outcome.kind == ProbeOutcome::kFailure) {
    event_(*due.pod, due.entry->container, "Unhealthy", kind + " probe failed: " + outcome.output);
  } else if (outcome.kind == ProbeOutcome::kUnknown) {
    event_(*due.pod, due.entry->container, "Unhealthy",
           kind + " probe errored and resulted in unknown state: " + outcome.output);
  } else if (outcome.kind == ProbeOutcome::kWarning) {
    event_(*due.pod, due.entry->container, "ProbeWarning", kind + " probe warning: " + outcome.output);
  }
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
