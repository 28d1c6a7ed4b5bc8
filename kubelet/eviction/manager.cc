#include "kubelet/eviction/manager.h"

#include <algorithm>

#include "kubelet/container/critical.h"
#include "kubelet/metrics/buckets.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::seconds kPeriod(10), kCleanup(30), kCleanupPoll(1);
// Whose alarms are at these indices.
constexpr const char* kAlarmed[] = {"memory.available", "allocatableMemory.available"};
constexpr char kMemoryTaint[] = "node.kubernetes.io/memory-pressure";

metrics::Family& Evictions() {
  return metrics::Counter("kubelet_evictions", "Cumulative number of pod evictions by eviction signal",
                          {"eviction_signal"});
}

metrics::Family& StatsAge() {
  return metrics::Histograms("kubelet_eviction_stats_age_seconds",
                             "Time between when stats are collected, and when pod is evicted based on those "
                             "stats by eviction signal",
                             DefaultBuckets(), {"eviction_signal"});
}

bool ToleratesMemoryPressure(const corev1::Pod& pod) {
  return std::any_of(pod.spec().tolerations().begin(), pod.spec().tolerations().end(), [](const auto& item) {
    const bool key = item.key() == kMemoryTaint || (item.key().empty() && item.operator_() == "Exists");
    return key && (item.effect().empty() || item.effect() == "NoSchedule");
  });
}

}  // namespace

EvictionManager::EvictionManager(Dependencies dependencies, EvictionOptions options,
                                 std::vector<Threshold> thresholds, Clock& clock)
    : deps_(std::move(dependencies)),
      options_(std::move(options)),
      thresholds_(std::move(thresholds)),
      clock_(clock) {}

std::set<Pressure> EvictionManager::pressures() const {
  MutexLock lock(mutex_);
  return state_.pressures;
}

std::optional<k8s::AdmitFailure> EvictionManager::Admit(const corev1::Pod& pod) const {
  const std::set<Pressure> pressures = this->pressures();
  if (pressures.empty() || IsCriticalPod(pod)) return std::nullopt;
  if (pressures == std::set<Pressure>{Pressure::kMemory} &&
      (k8s::ComputeQosClass(pod) != k8s::kBestEffort || ToleratesMemoryPressure(pod))) {
    return std::nullopt;
  }
  std::string names;
  for (Pressure pressure : pressures) {
    names += (names.empty() ? "" : " ") + std::string(ConditionOf(pressure));
  }
  return k8s::AdmitFailure{"Evicted", "The node had condition: [" + names + "]. "};
}

std::optional<EvictionManager::Evicted> EvictionManager::Evict(const PodPtr& evicted,
                                                               const std::string& message,
                                                               const Threshold* threshold) {
  const corev1::Pod& pod = *evicted;
  if (IsCriticalPod(pod)) {
    log::Error("Eviction manager: cannot evict a critical pod",
               {{"pod", pod.metadata().namespace_() + "/" + pod.metadata().name()}});
    return std::nullopt;
  }
  std::chrono::seconds grace(1);
  if (threshold && threshold->soft) {
    int64_t seconds = options_.max_pod_grace_period;
    const bool own = pod.spec().has_termination_grace_period_seconds();
    if (own) seconds = std::min<int64_t>(seconds, pod.spec().termination_grace_period_seconds());
    grace = std::chrono::seconds(std::max<int64_t>(seconds, 1));
  }
  log::Info("Evicting pod",
            {{"pod", pod.metadata().namespace_() + "/" + pod.metadata().name()}, {"message", message}});
  deps_.evict(pod, message, grace);
  return Evicted{evicted, grace};
}

std::vector<EvictionManager::Evicted> EvictionManager::EvictForLimits(const std::vector<PodPtr>& pods) {
  std::vector<Evicted> out;
  for (const PodPtr& pod : pods) {
    if (!HasStorageLimit(*pod)) continue;  // what it uses need not be counted
    const auto excess = StorageLimitExceeded(*pod, deps_.usage(*pod));
    if (!excess) continue;
    auto evicted = Evict(pod, excess->message, nullptr);
    if (!evicted) continue;
    out.push_back(std::move(*evicted));
    Evictions().With({excess->signal}).Increment();
  }
  return out;
}

bool EvictionManager::ReclaimFromNode(const Threshold& threshold, const DiskLayout& layout,
                                      std::stop_token stop) {
  const NodeReclaim reclaim = ReclaimFor(threshold.signal, layout);
  if (!reclaim.containers && !reclaim.images) return false;
  if (reclaim.containers) deps_.remove_containers(stop);
  if (reclaim.images) deps_.remove_images(stop);
  const std::vector<Threshold> thresholds = WithContainerFs(thresholds_, layout);
  const Observations now = deps_.observe(stop);
  return std::none_of(thresholds.begin(), thresholds.end(),
                      [&](const Threshold& item) { return IsMet(item, now, true); });
}

std::vector<EvictionManager::Evicted> EvictionManager::EvictOne(const Threshold& threshold,
                                                                const DiskLayout& layout,
                                                                const std::vector<PodPtr>& pods,
                                                                const Observations& observations) {
  std::vector<Candidate> candidates;
  std::map<const corev1::Pod*, PodPtr> owners;
  for (const PodPtr& pod : pods) {
    candidates.push_back({pod.get(), deps_.usage(*pod)});
    owners[pod.get()] = pod;
  }
  RankCandidates(threshold.signal, layout, candidates);
  for (const Candidate& candidate : candidates) {
    auto evicted =
        Evict(owners[candidate.pod], EvictionMessage(threshold, observations, candidate), &threshold);
    if (!evicted) continue;
    Evictions().With({threshold.signal}).Increment();
    return {std::move(*evicted)};
  }
  log::Info("Eviction manager: unable to evict any pods from the node", {});
  return {};
}

std::vector<EvictionManager::Evicted> EvictionManager::Synchronize(std::stop_token stop) {
  Stopwatch age;
  const Observations observations = deps_.observe(stop);
  const DiskLayout layout = deps_.layout ? deps_.layout() : DiskLayout();
  std::vector<Threshold> due;
  {
    MutexLock lock(mutex_);
    last_ = observations;
    due = UpdateEviction(WithContainerFs(thresholds_, layout), observations, options_, clock_.SteadyNow(),
                         state_);
  }
  const std::vector<PodPtr> pods = deps_.pods();
  if (options_.local_storage) {
    if (auto evicted = EvictForLimits(pods); !evicted.empty()) return evicted;
  }
  if (due.empty()) return {};
  const Threshold& threshold = due.front();
  const std::string resource = ResourceOfSignal(threshold.signal);
  log::Warn("Eviction manager: attempting to reclaim", {{"resource", resource}});
  deps_.node_event("EvictionThresholdMet", "Attempting to reclaim " + resource);
  if (ReclaimFromNode(threshold, layout, stop)) return {};
  auto evicted = EvictOne(threshold, layout, pods, observations);
  if (!evicted.empty()) StatsAge().HistogramWith({threshold.signal}).Observe(age.Seconds());
  return evicted;
}

void EvictionManager::Await(linux::MemoryAlarm* alarm, std::stop_token stop) {
  if (!alarm) {
    Pause(clock_, kPeriod, stop);
    return;
  }
  Observations last;
  {
    MutexLock lock(mutex_);
    last = last_;
  }
  size_t index = 0;
  for (const char* signal : kAlarmed) {
    if (auto growth = MemoryLeft(thresholds_, last, signal)) {
      if (auto armed = alarm->Arm(index, *growth); !armed) {
        log::Debug("Memory is only looked at now and then", {{"err", armed.error()}});
      }
    }
    ++index;
  }
  alarm->Wait(kPeriod, stop);
}

// A pod that goes takes a while to free what it held: no second one goes before that can be seen.
void EvictionManager::AwaitCleanup(const std::vector<Evicted>& pods, std::stop_token stop) {
  std::chrono::seconds grace(0);
  for (const Evicted& evicted : pods) grace = std::max(grace, evicted.grace);
  const SteadyTime deadline = clock_.SteadyNow() + grace + kCleanup;
  while (Pause(clock_, kCleanupPoll, stop) && clock_.SteadyNow() < deadline) {
    const bool cleaned = std::all_of(pods.begin(), pods.end(), [this](const Evicted& evicted) {
      return deps_.cleaned_up(evicted.pod->metadata().uid());
    });
    if (cleaned) return;
  }
}

void EvictionManager::Run(std::stop_token stop) {
  const std::unique_ptr<linux::MemoryAlarm> alarm = deps_.alarm ? deps_.alarm() : nullptr;
  while (!stop.stop_requested()) {
    const std::vector<Evicted> evicted = Synchronize(stop);
    if (evicted.empty()) {
      Await(alarm.get(), stop);
    } else {
      AwaitCleanup(evicted, stop);
    }
  }
}

}  // namespace keelson::kubelet
