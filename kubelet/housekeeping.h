// Every two seconds, where anything has changed: takes away what nobody asks for any more (pods that were
// deleted while the kubelet was away, directories and cgroups of pods that are no more), and gives classes of
// pods as wholes what their pods ask for.
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

class Housekeeping {  // one thread
 public:
  struct Dependencies {
    cri::RuntimeService& runtime;
    PodCgroups& cgroups;
    VolumeManager& volumes;
    const Pleg& pleg;
    PodWorkers& workers;
    NodeResources* resources;         // may be null
    std::function<bool()> all_known;  // false: some pods may not have been heard of yet
    std::function<std::vector<PodWorkers::PodPtr>()> granted;  // pods with the resources that they have
  };
  Housekeeping(Dependencies dependencies, const NodeContext& node, Clock& clock)
      : d_(std::move(dependencies)), node_(node), clock_(clock) {}

  void Run(std::stop_token stop);

 private:
  void UpdateClasses(bool full);
  bool Changed();                           // or there is still something to do
  bool CleanOrphans(std::stop_token stop);  // whether nothing is left

  const Dependencies d_;
  const NodeContext& node_;
  Clock& clock_;
  // As they were looked at last.
  std::vector<PodWorkers::PodPtr> granted_;
  std::set<std::string> running_, known_;
  bool clean_ = false;
};

}  // namespace keelson::kubelet
