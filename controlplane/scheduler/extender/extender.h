// Scheduler extenders: processes that are asked over HTTP, after the plugins, which nodes they refuse and
// prefer, whom to evict, and that may bind (k8s.io/kube-scheduler/extender/v1).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/extender/client.h"
#include "controlplane/scheduler/framework/evictor.h"

namespace keelson::scheduler {

class HttpExtenders : public Extenders {
 public:
  // kInvalid: a URL or a certificate.
  static Result<std::unique_ptr<HttpExtenders>> Create(const std::vector<ExtenderConfig>& configs,
                                                       ExtenderObjects objects, std::stop_token stop);

  bool Interested(const PodInfo& pod) const override;
  Result<> Filter(const PodInfo& pod, const Snapshot& snapshot, std::vector<uint32_t>& slots,
                  std::vector<Refusal>& refused) override;
  void Prioritize(const PodInfo& pod, const Snapshot& snapshot, const std::vector<uint32_t>& slots,
                  std::vector<int64_t>& totals) override;
  // Whether any of them has a say in whom to evict for the pod.
  bool Preempts(const PodInfo& pod) const;
  // Whom to evict for the pod, by slot: leaves the nodes and the victims that they want.
  Result<> Preempt(const PodInfo& pod, const Snapshot& snapshot, VictimsBySlot& victims) const;
  // False: none of them binds this pod. Thread safe.
  Result<bool> Bind(const PodInfo& pod, const std::string& node) const;

 private:
  std::vector<std::unique_ptr<ExtenderClient>> all_;
};

// The bind plugin in front of all others. `extenders` outlives it.
std::unique_ptr<Plugin> NewExtenderBinder(const HttpExtenders& extenders);

}  // namespace keelson::scheduler
