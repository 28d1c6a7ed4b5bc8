#include "kubelet/housekeeping.h"

#include <malloc.h>

#include "kubelet/metrics/orphans.h"
#include "lib/base/file.h"
#include "lib/base/pause.h"

namespace keelson::kubelet {

namespace {
constexpr std::chrono::seconds kPeriod(2);
constexpr int kTrimEvery = 30;  // periods
}

void Housekeeping::CleanOrphans(std::stop_token stop) {
  // What is left is listed first, what is known after it: a pod that comes in between is known.
  std::set<std::string> running = d_.pleg.Uids();
  std::set<std::string> leftovers = d_.cgroups.Uids();
  if (auto dirs = ListDir(node_.paths.Pods())) leftovers.insert(dirs->begin(), dirs->end());
  std::set<std::string> known = d_.workers.Uids();
  for (const std::string& uid : running) {
    if (known.count(uid) || stop.stop_requested()) continue;
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
    auto removed = d_.volumes.Remove(node_.paths, uid);
    if (removed) removed = d_.cgroups.Remove(uid);
    ++(removed ? cleaned : failed);
    if (!removed)
      log::Debug("Cannot remove what is left of a pod", {{"uid", uid}, {"error", removed.error()}});
  }
  TellSweep(cleaned, failed);
}

void Housekeeping::Run(std::stop_token stop) {
  do {
    if (auto updated = d_.cgroups.UpdateClasses(d_.granted(), node_); !updated)
      log::Warn("Failed to update QoS cgroup configuration", {{"error", updated.error()}});
    if (!d_.all_known()) continue;
    CleanOrphans(stop);
    if (d_.resources) d_.resources->Retain(d_.workers.Uids());
  } while (Pause(clock_, kPeriod, stop));
}

}  // namespace keelson::kubelet
