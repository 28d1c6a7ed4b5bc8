#include "kubelet/shutdown/manager.h"

#include <algorithm>
#include <set>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kLookAtPods(100);
constexpr seconds kReconnect(1), kLogindReload(3);

void Stamp(const char* name, const char* help, WallTime at) {
  metrics::Gauge(name, help)
      .With()
      .Set(std::chrono::duration_cast<std::chrono::duration<double>>(at.time_since_epoch()).count());
}
void StampStart(WallTime at) {
  Stamp("kubelet_graceful_shutdown_start_time_seconds",
        "Last graceful shutdown start time since unix epoch in seconds", at);
}
void StampEnd(WallTime at) {
  Stamp("kubelet_graceful_shutdown_end_time_seconds",
        "Last graceful shutdown start time since unix epoch in seconds", at);
}

}  // namespace

ShutdownManager::ShutdownManager(Dependencies dependencies, std::vector<ShutdownPeriod> periods,
                                 std::string drop_in_dir, Clock& clock)
    : deps_(std::move(dependencies)),
      periods_(std::move(periods)),
      drop_in_dir_(std::move(drop_in_dir)),
      clock_(clock) {
  if (!enabled()) return;
  StampStart(WallTime());
  StampEnd(WallTime());
}

std::optional<k8s::AdmitFailure> ShutdownManager::Admit() const {
  if (!shutting_down_) return std::nullopt;
  return k8s::AdmitFailure{"NodeShutdown", "Pod was rejected as the node is shutting down."};
}

// Has logind wait as long as the pods may take.
Result<> ShutdownManager::Prepare(linux::Logind& logind) {
  const seconds wanted = TotalOf(periods_);
  KEELSON_ASSIGN_OR_RETURN(auto delay, logind.InhibitDelay());
  if (delay >= wanted) return {};
  KEELSON_RETURN_IF_ERROR(MakeDirs(drop_in_dir_));
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(
      drop_in_dir_ + "/99-kubelet.conf",
      "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=" + std::to_string(wanted.count()) + "\n"));
  KEELSON_RETURN_IF_ERROR(logind.Reload());
  // It answers with the old value until it has read the file.
  for (milliseconds waited(0); waited < kLogindReload; waited += kLookAtPods) {
    KEELSON_ASSIGN_OR_RETURN(delay, logind.InhibitDelay());
    if (delay >= wanted) return {};
    Pause(clock_, kLookAtPods, {});
  }
  return Error(Code::kUnavailable,
               "node shutdown manager was unable to update logind InhibitDelayMaxSec to " +
                   std::to_string(wanted.count()) +
                   "s (ShutdownGracePeriod), current value of InhibitDelayMaxSec (" +
                   std::to_string(std::chrono::duration_cast<seconds>(delay).count()) +
                   "s) is less than requested ShutdownGracePeriod");
}

Result<> ShutdownManager::Run(std::stop_token stop) {
  for (bool first = true; !stop.stop_requested(); first = false) {
    auto logind = deps_.connect();
    Result<> ended = logind ? Prepare(**logind) : Result<>(logind.error());
    if (!ended && first) return ended.error().Wrap("node shutdown manager");
    if (ended) ended = Follow(**logind, stop);
    if (stop.stop_requested()) break;
    if (!ended) log::Warn("Lost the connection to logind", {{"err", ended.error()}});
    Pause(clock_, kReconnect, stop);
  }
  return {};
}

Result<> ShutdownManager::Follow(linux::Logind& logind, std::stop_token stop) {
  constexpr char kWhy[] = "Kubelet needs time to handle node shutdown";
  KEELSON_ASSIGN_OR_RETURN(UniqueFd lock, logind.DelayShutdown("kubelet", kWhy));
  while (!stop.stop_requested()) {
    KEELSON_ASSIGN_OR_RETURN(const bool begins, logind.NextShutdown(stop));
    log::Info("Shutdown manager detected new shutdown event", {{"event", begins ? "shutdown" : "cancelled"}});
    deps_.event(begins ? "Shutdown manager detected shutdown event"
                       : "Shutdown manager detected cancelled event");
    shutting_down_ = begins;
    deps_.changed();
    if (begins) {
      EndPods(stop);
      lock.Reset();
    } else {
      KEELSON_ASSIGN_OR_RETURN(lock, logind.DelayShutdown("kubelet", kWhy));
    }
  }
  return {};
}

void ShutdownManager::EndPods(std::stop_token stop) {
  StampStart(clock_.Now());
  for (const ShutdownGroup& group : GroupByPriority(periods_, deps_.active())) {
    if (!group.pods.empty() && !stop.stop_requested()) EndGroup(group, stop);
  }
  StampEnd(clock_.Now());
  log::Info("Shutdown manager completed processing shutdown event, node will shutdown shortly");
}

// Returns when the group's pods have ended, or when its time is over.
void ShutdownManager::EndGroup(const ShutdownGroup& group, std::stop_token stop) {
  const SteadyTime end = clock_.SteadyNow() + group.period;
  std::set<std::string> ours;
  for (const auto& pod : group.pods) {
    const seconds grace = GraceIn(group, *pod);
    log::Info("Shutdown manager killing pod with gracePeriod", {{"namespace", pod->metadata().namespace_()},
                                                                {"pod", pod->metadata().name()},
                                                                {"gracePeriod", grace.count()}});
    ours.insert(pod->metadata().uid());
    deps_.end(*pod, grace);
  }
  for (;;) {
    const auto active = deps_.active();
    const bool left = std::any_of(active.begin(), active.end(),
                                  [&](const auto& pod) { return ours.count(pod->metadata().uid()) > 0; });
    if (!left) return;
    if (clock_.SteadyNow() >= end) {
      log::Warn("Shutdown manager pod killing time out", {{"gracePeriod", group.period.count()}});
      return;
    }
    if (!Pause(clock_, kLookAtPods, stop)) return;
  }
}

}  // namespace keelson::kubelet
