// Scheduler extenders: HTTP services that filter and prioritize nodes after the plugins, take part in
// preemption, and may bind pods (k8s.io/kube-scheduler/extender/v1).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/extender/client.h"
#include "controlplane/scheduler/preemption/executor.h"

namespace keelson::scheduler {

class HttpExtenders : public Extenders {
 public:
  // kInvalid: a URL or a certificate.
  static Result<std::unique_ptr<HttpExtenders>> Create(const std::vector<ExtenderConfig>& configs,
                                                       ExtenderObjects objects, std::stop_token stop);

  bool IsInterested(const PodInfo& pod) const override;
  Result<> Filter(const PodInfo& pod, const Snapshot& snapshot, std::vector<uint32_t>& slots,
                  std::vector<FailedNode>& failed_nodes) override;
  void Prioritize(const PodInfo& pod, const Snapshot& snapshot, const std::vector<uint32_t>& slots,
                  std::vector<int64_t>& totals) override;
  // Whether any extender takes part in preemption for the pod.
  bool SupportsPreemption(const PodInfo& pod) const;
  // Reduces `victims` to the nodes and pods that the extenders accept. An error of an extender that is not
  // ignorable ends the attempt.
  Result<> ProcessPreemption(const PodInfo& pod, const Snapshot& snapshot, NodeToVictims& victims) const;
  // Binds the pod by the first extender that does so. False: none binds this pod. Thread safe.
  Result<bool> Bind(const PodInfo& pod, const std::string& node) const;

 private:
  std::vector<std::unique_ptr<ExtenderClient>> all_;
};

// A bind plugin, to be the first, that calls HttpExtenders::Bind. `extenders` outlives it.
std::unique_ptr<Plugin> NewExtenderBinder(const HttpExtenders& extenders);

}  // namespace keelson::scheduler
