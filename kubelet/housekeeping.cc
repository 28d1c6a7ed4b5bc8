#include "kubelet/housekeeping.h"

#include "kubelet/metrics/orphans.h"
#include "lib/base/file.h"
#include "lib/base/pause.h"
#include "lib/k8s/pod_util.h"
#include "lib/k8s/qos.h"

namespace keelson::kubelet {

namespace {
constexpr std::chrono::seconds kPeriod(2);
}

void Housekeeping::CleanOrphans(std::stop_token stop) {
  // What is left is listed first, what is known after it: a pod that comes in between is known.
  std::set<std::string> running = d_.pleg.Uids();
  std::set<std::string> leftovers = d_.cgroups.Uids();
  if (auto dirs = ListDir(paths_.Pods())) leftovers.insert(dirs->begin(), dirs->end());
  std::set<std::string> known = d_.workers.Uids();
  for (const std::string& uid : running) {
    if (known.count(uid) || stop.stop_requested()) continue;
    auto status = InspectPod(d_.runtime, uid, nullptr, stop);
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
    auto removed = d_.volumes.Remove(paths_, uid);
    if (removed) removed = d_.cgroups.Remove(uid);
    ++(removed ? cleaned : failed);
    if (!removed)
      log::Debug("Cannot remove what is left of a pod", {{"uid", uid}, {"error", removed.error()}});
  }
  TellSweep(cleaned, failed);
}

void Housekeeping::ShareCpu() {
  int64_t milli = 0;
  for (const auto& pod : d_.granted())
    if (k8s::QosClass(*pod) == k8s::kBurstable)
      milli += k8s::AmountOf(k8s::PodRequests(*pod), "cpu").MilliValue();
  if (milli == burstable_milli_) return;
  if (auto shared = d_.cgroups.ShareCpu(milli); !shared)
    log::Warn("Cannot update the share of Burstable pods", {{"error", shared.error()}});
  else
    burstable_milli_ = milli;
}

void Housekeeping::Run(std::stop_token stop) {
  do {
    ShareCpu();
    if (!d_.all_known()) continue;
    CleanOrphans(stop);
    if (d_.resources) d_.resources->Retain(d_.workers.Uids());
  } while (Pause(clock_, kPeriod, stop));
}

}  // namespace keelson::kubelet
