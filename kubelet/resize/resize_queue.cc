#include "kubelet/resize/resize_queue.h"

#include <algorithm>
#include <tuple>

#include "kubelet/resize/resize_metrics.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

namespace {

// A restarted kubelet continues with the order of its predecessor.
WallTime SinceOf(const corev1::Pod& pod, WallTime now) {
  const corev1::PodCondition* condition = k8s::FindCondition(pod.status(), "PodResizePending");
  const bool waits = condition && condition->reason() == "Deferred" && condition->has_last_transition_time();
  return waits ? api::FromTime(condition->last_transition_time()) : now;
}

}  // namespace

ResizeTurn TurnOf(const corev1::Pod& wish, const corev1::Pod& granted, WallTime since) {
  const k8s::ResourceList wanted = k8s::PodRequests(wish), has = k8s::PodRequests(granted);
  ResizeTurn turn;
  turn.grows = k8s::AmountOf(wanted, "cpu") > k8s::AmountOf(has, "cpu") ||
               k8s::AmountOf(wanted, "memory") > k8s::AmountOf(has, "memory");
  turn.priority = k8s::Priority(wish.spec());
  const std::string_view qos = k8s::QosClass(wish);
  turn.qos = qos == k8s::kGuaranteed ? 0 : qos == k8s::kBurstable ? 1 : 2;
  turn.since = since;
  return turn;
}

bool ComesBefore(const ResizeTurn& a, const ResizeTurn& b) {
  return std::tuple(a.grows, -int64_t{a.priority}, a.qos, a.since) <
         std::tuple(b.grows, -int64_t{b.priority}, b.qos, b.since);
}

std::optional<ResizeRefusal> ResizeQueue::Ask(const PodPtr& wish) {
  const std::string& uid = wish->metadata().uid();
  std::vector<std::string> granted;
  std::optional<ResizeRefusal> refusal;
  {
    MutexLock lock(mutex_);
    auto [own, fresh] = waiting_.try_emplace(uid);
    own->second.wish = wish;
    if (fresh) own->second.since = SinceOf(*wish, clock_.Now());
    granted = Pass();
    if (auto still = waiting_.find(uid); still != waiting_.end()) refusal = still->second.refusal;
  }
  Tell(granted, uid, "pod_resized");
  return refusal;
}

void ResizeQueue::Leave(const std::string& uid) {
  MutexLock lock(mutex_);
  waiting_.erase(uid);
}

void ResizeQueue::Retry() {
  std::vector<std::string> granted;
  {
    MutexLock lock(mutex_);
    granted = Pass();
  }
  Tell(granted, "", "pods_removed");
}

std::vector<std::string> ResizeQueue::InTurn() const {
  std::vector<std::pair<ResizeTurn, std::string>> turns;
  for (const auto& [uid, one] : waiting_) {
    turns.emplace_back(TurnOf(*one.wish, *deps_.allocations.Granted(one.wish), one.since), uid);
  }
  std::sort(turns.begin(), turns.end(),
            [](const auto& a, const auto& b) { return ComesBefore(a.first, b.first); });
  std::vector<std::string> out;
  for (auto& [turn, uid] : turns) out.push_back(std::move(uid));
  return out;
}

std::vector<std::string> ResizeQueue::Pass() {
  std::vector<std::string> out;
  // Resources that one pod returns are room for another, also for an earlier one.
  size_t before;
  do {
    before = out.size();
    for (const std::string& uid : InTurn()) {
      Waiting& one = waiting_.at(uid);
      auto refusal = deps_.refuse(*one.wish, *deps_.allocations.Granted(one.wish));
      // What is not on disk would be forgotten by the next kubelet.
      if (!refusal) {
        if (auto kept = deps_.allocations.Grant(*one.wish); !kept) {
          refusal = ResizeRefusal{"Deferred", kept.error().message(), ""};
        }
      }
      if (refusal) {
        one.refusal = std::move(*refusal);
        continue;
      }
      waiting_.erase(uid);
      out.push_back(uid);
    }
  } while (out.size() != before);
  return out;
}

void ResizeQueue::Tell(const std::vector<std::string>& granted, const std::string& except,
                       const char* trigger) {
  for (const std::string& uid : granted) {
    if (uid == except) continue;
    CountDeferredResizeAccepted(trigger);
    deps_.granted(uid);
  }
}

}  // namespace keelson::kubelet
