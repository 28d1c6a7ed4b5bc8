#include "kubelet/housekeeping.h"

#include <malloc.h>

#include "kubelet/metrics/orphan_pod_metrics.h"
#include "lib/base/file.h"
#include "lib/base/pause.h"

namespace keelson::kubelet {

namespace {
constexpr std::chrono::seconds kPeriod(2);
// One round of this many looks at everything, even if nothing has changed.
constexpr int kFullRound = 15;
}  // namespace

void Housekeeping::UpdateQosCgroups(bool full) {
  std::vector<PodWorkers::PodPtr> allocated = deps_.allocated();
  if (!full && allocated == allocated_) return;
  allocated_ = std::move(allocated);
  if (auto updated = deps_.cgroups.UpdateQosCgroups(allocated_, node_); !updated) {
    log::Warn("Failed to update QoS cgroup configuration", {{"err", updated.error()}});
    allocated_.clear();  // try again in the next round
  }
}

bool Housekeeping::Changed() {
  std::set<std::string> running = deps_.pleg.Uids(), known = deps_.workers.Uids();
  if (clean_ && running == running_ && known == known_) return false;
  running_ = std::move(running);
  known_ = std::move(known);
  return true;
}

bool Housekeeping::HandlePodCleanups(std::stop_token stop) {
  // Orphans are listed before known pods, so that a pod that comes in between is no orphan.
  const std::set<std::string> running = deps_.pleg.Uids();
  std::set<std::string> leftovers = deps_.cgroups.Uids();
  if (auto dirs = ListDir(node_.paths.Pods())) leftovers.insert(dirs->begin(), dirs->end());
  std::set<std::string> known = deps_.workers.Uids();
  bool clean = true;
  for (const std::string& uid : running) {
    if (known.count(uid) || stop.stop_requested()) continue;
    clean = false;
    auto status = InspectPod(deps_.runtime, uid, nullptr, stop);
    if (!status) known.insert(uid);  // it may run: keep its directories
    if (!status || (status->sandboxes.empty() && status->containers.empty())) continue;
    log::Info("Removing a pod that is unknown to the API",
              {{"namespace", status->ns}, {"pod", status->name}});
    CountOrphanedRuntimePod();
    deps_.workers.TerminateRuntimePod(*status);
    known.insert(uid);
  }
  int cleaned = 0, failed = 0;
  // Ended pods may still be in the API: the loop below does not see what they have left.
  if (auto removed = deps_.volumes.RemoveLeftBehind(node_.paths, stop); !removed) {
    log::Debug("Cannot remove what ended pods have left", {{"err", removed.error()}});
  }
  for (const std::string& uid : leftovers) {
    if (known.count(uid) || stop.stop_requested()) continue;
    auto removed = deps_.volumes.Remove(node_.paths, uid, stop);
    if (removed) removed = deps_.cgroups.Remove(uid);
    ++(removed ? cleaned : failed);
    if (!removed) log::Debug("Cannot remove what is left of a pod", {{"uid", uid}, {"err", removed.error()}});
  }
  SetOrphanPodCleanedVolumes(cleaned, failed);
  return clean && failed == 0;
}

void Housekeeping::Run(std::stop_token stop) {
  int round = 0;
  do {
    const bool full = round++ % kFullRound == 0;
    if (full) ::malloc_trim(0);  // returns what a burst of pods has freed, also in the middle of the heap
    UpdateQosCgroups(full);
    if (!deps_.sources_ready()) continue;
    if (Changed() || full || !deps_.volumes.LeftBehind().empty()) clean_ = HandlePodCleanups(stop);
    if (deps_.container_manager) deps_.container_manager->RemoveStaleState(deps_.workers.Uids());
  } while (Pause(clock_, kPeriod, stop));
}

}  // namespace keelson::kubelet
