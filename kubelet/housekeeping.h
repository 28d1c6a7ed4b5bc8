// The housekeeping loop, every two seconds (upstream's HandlePodCleanups and UpdateQOSCgroups): terminates pods that
// the runtime has and no source knows, removes directories and cgroups of pods that are gone, and sets the limits
// of the QoS cgroups. Rounds in which nothing has changed cost little.
#pragma once

#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/cm/container_manager.h"
#include "kubelet/container/node_context.h"
#include "kubelet/pod/pleg.h"
#include "kubelet/pod/pod_workers.h"
#include "kubelet/volume/volume_manager.h"

namespace keelson::kubelet {

class Housekeeping {  // for one thread
 public:
  struct Dependencies {
    cri::RuntimeService& runtime;
    PodCgroups& cgroups;
    VolumeManager& volumes;
    const Pleg& pleg;
    PodWorkers& workers;
    ContainerManager* container_manager;  // may be null
    std::function<bool()> sources_ready;  // every source has delivered its pods: others are orphans
    std::function<std::vector<PodWorkers::PodPtr>()> allocated;  // active pods with their allocated resources
  };
  Housekeeping(Dependencies dependencies, const NodeContext& node, Clock& clock)
      : deps_(std::move(dependencies)), node_(node), clock_(clock) {}

  // Until `stop`.
  void Run(std::stop_token stop);

 private:
  // `full`: even if the pods have not changed.
  void UpdateQosCgroups(bool full);
  // Whether the pods have changed since the last call, or the last cleanup left something.
  bool Changed();
  // Whether nothing is left to clean up.
  bool HandlePodCleanups(std::stop_token stop);

  const Dependencies deps_;
  const NodeContext& node_;
  Clock& clock_;
  // As of the last round.
  std::vector<PodWorkers::PodPtr> allocated_;
  std::set<std::string> running_, known_;
  bool clean_ = false;
};

}  // namespace keelson::kubelet
