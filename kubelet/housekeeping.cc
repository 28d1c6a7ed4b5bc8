#include "kubelet/housekeeping.h"

#include <malloc.h>

#include "kubelet/metrics/orphans.h"
#include "lib/base/file.h"
#include "lib/base/pause.h"

namespace keelson::kubelet {

namespace {
constexpr std::chrono::seconds kPeriod(2);
// Of so many rounds one looks at everything, whether or not anything is known to have changed.
constexpr int kFullRound = 15;
}  // namespace

void Housekeeping::UpdateClasses(bool full) {
  std::vector<PodWorkers::PodPtr> granted = d_.granted();
  if (!full && granted == granted_) return;
  granted_ = std::move(granted);
  if (auto updated = d_.cgroups.UpdateClasses(granted_, node_); !updated) {
    log::Warn("Failed to update QoS cgroup configuration", {{"error", updated.error()}});
    granted_.clear();  // once more in the next round
  }
}

bool Housekeeping::Changed() {
  std::set<std::string> running = d_.pleg.Uids(), known = d_.workers.Uids();
  if (clean_ && running == running_ && known == known_) return false;
  running_ = std::move(running);
  known_ = std::move(known);
  return true;
}

bool Housekeeping::CleanOrphans(std::stop_token stop) {
  // What is left is listed first, what is known after it: a pod that comes in between is known.
  const std::set<std::string> running = d_.pleg.Uids();
  std::set<std::string> leftovers = d_.cgroups.Uids();
  if (auto dirs = ListDir(node_.paths.Pods())) leftovers.insert(dirs->begin(), dirs->end());
  std::set<std::string> known = d_.workers.Uids();
  bool clean = true;
  for (const std::string& uid : running) {
    if (known.count(uid) || stop.stop_requested()) continue;
    clean = false;
    auto status = InspectPod(d_.runtime, uid, nullptr, stop);
    if (!status) known.insert(uid);  // it may run: nothing is taken from under it
    if (!status || (status->sandboxes.empty() && status->containers.empty())) continue;
    log::Info("Removing a pod that is unknown to the API",
              {{"namespace", status->ns}, {"pod", status->name}});
    CountOrphan();
    d_.workers.Orphan(*status);
    known.insert(uid);
  }
  int cleaned = 0, failed = 0;
  for (const std::string& uid : leftovers) {
    if (known.count(uid) || stop.stop_requested()) continue;
    auto removed = d_.volumes.Remove(node_.paths, uid, stop);
    if (removed) removed = d_.cgroups.Remove(uid);
    ++(removed ? cleaned : failed);
    if (!removed)
      log::Debug("Cannot remove what is left of a pod", {{"uid", uid}, {"error", removed.error()}});
  }
  TellSweep(cleaned, failed);
  return clean && failed == 0;
}

void Housekeeping::Run(std::stop_token stop) {
  int round = 0;
  do {
    const bool full = round++ % kFullRound == 0;
    if (full) ::malloc_trim(0);  // what a burst has left free, in the middle of the heap too
    UpdateClasses(full);
    if (!d_.all_known()) continue;
    if (Changed() || full) clean_ = CleanOrphans(stop);
    if (d_.resources) d_.resources->Retain(d_.workers.Uids());
  } while (Pause(clock_, kPeriod, stop));
}

}  // namespace keelson::kubelet
