#include "kubelet/eviction/manager.h"

#include <algorithm>

#include "kubelet/container/critical.h"
#include "kubelet/metrics/buckets.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/pause.h"
#include "lib/k8s/pod_util.h"
#include "lib/k8s/qos.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::seconds kPeriod(10), kAfterEviction(2);
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
      (k8s::ComputeQosClass(pod) != k8s::kBestEffort || ToleratesMemoryPressure(pod)))
    return std::nullopt;
  std::string names;
  for (Pressure pressure : pressures)
    names += (names.empty() ? "" : " ") + std::string(ConditionOf(pressure));
  return k8s::AdmitFailure{"Evicted", "The node had condition: [" + names + "]. "};
}

bool EvictionManager::Evict(const corev1::Pod& pod, const std::string& message, const Threshold* threshold) {
  if (IsCriticalPod(pod)) {
    log::Error("Eviction manager: cannot evict a critical pod",
               {{"pod", pod.metadata().namespace_() + "/" + pod.metadata().name()}});
    return false;
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
  return true;
}

std::optional<std::string> EvictionManager::EvictForLimits(const std::vector<PodPtr>& pods) {
  std::optional<std::string> evicted;
  for (const PodPtr& pod : pods) {
    if (!HasStorageLimit(*pod)) continue;  // what it uses need not be counted
    const std::string message = StorageLimitExceeded(*pod, deps_.usage(*pod));
    if (message.empty() || !Evict(*pod, message, nullptr)) continue;
    evicted = pod->metadata().name();
    Evictions().With({"ephemeralpodfs.limit"}).Increment();
  }
  return evicted;
}

bool EvictionManager::ReclaimFromNode(const Threshold& threshold, const DiskLayout& layout,
                                      std::stop_token stop) {
  const NodeReclaim reclaim = ReclaimFor(threshold.signal, layout);
  const std::vector<Threshold> thresholds = WithContainerFs(thresholds_, layout);
  for (const auto& [use, free] : {std::pair(reclaim.containers, &deps_.remove_containers),
                                  std::pair(reclaim.images, &deps_.remove_images)}) {
    if (!use) continue;
    (*free)(stop);
    const Observations now = deps_.observe(stop);
    const bool enough = std::none_of(thresholds.begin(), thresholds.end(), [&](const Threshold& item) {
      return PressureOf(item.signal) == Pressure::kDisk && IsMet(item, now, item == threshold);
    });
    if (enough) return true;
  }
  return false;
}

std::optional<std::string> EvictionManager::EvictOne(const Threshold& threshold, const DiskLayout& layout,
                                                     const std::vector<PodPtr>& pods,
                                                     const Observations& observations) {
  std::vector<Candidate> candidates;
  for (const PodPtr& pod : pods) candidates.push_back({pod.get(), deps_.usage(*pod)});
  RankCandidates(threshold.signal, layout, candidates);
  for (const Candidate& candidate : candidates) {
    if (!Evict(*candidate.pod, EvictionMessage(threshold, observations, candidate), &threshold)) continue;
    Evictions().With({threshold.signal}).Increment();
    return candidate.pod->metadata().name();
  }
  log::Info("Eviction manager: unable to evict any pods from the node", {});
  return std::nullopt;
}

std::optional<std::string> EvictionManager::Synchronize(std::stop_token stop) {
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
  if (options_.local_storage)
    if (auto evicted = EvictForLimits(pods)) return evicted;
  if (due.empty()) return std::nullopt;
  const Threshold& threshold = due.front();
  const std::string resource = ResourceOfSignal(threshold.signal);
  log::Warn("Eviction manager: attempting to reclaim", {{"resource", resource}});
  deps_.node_event("EvictionThresholdMet", "Attempting to reclaim " + resource);
  if (ReclaimFromNode(threshold, layout, stop)) return std::nullopt;
  auto evicted = EvictOne(threshold, layout, pods, observations);
  if (evicted) StatsAge().HistogramWith({threshold.signal}).Observe(age.Seconds());
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
    if (auto growth = MemoryLeft(thresholds_, last, signal))
      if (auto armed = alarm->Arm(index, *growth); !armed)
        log::Debug("Memory is only looked at now and then", {{"error", armed.error()}});
    ++index;
  }
  alarm->Wait(kPeriod, stop);
}

void EvictionManager::Run(std::stop_token stop) {
  const std::unique_ptr<linux::MemoryAlarm> alarm = deps_.alarm ? deps_.alarm() : nullptr;
  while (!stop.stop_requested()) {
    // A pod that goes takes a while to free what it held: no second one goes before that can be seen.
    if (Synchronize(stop))
      Pause(clock_, kPeriod + kAfterEviction, stop);
    else
      Await(alarm.get(), stop);
  }
}

}  // namespace keelson::kubelet
