// Monitors node health: sets the conditions of unresponsive nodes to Unknown, taints unhealthy nodes, and
// marks their pods not ready.
//
//   Lease renewed --- no renewal for the grace period ---> conditions Unknown, taint unreachable:NoSchedule,
//                                                          pods not ready; NoExecute taint (rate limited)
//
// zones.h limits the rate of NoExecute taints. When no node is healthy, no node gets one.
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/options.h"
#include "controlplane/controllers/node/node_plan.h"
#include "controlplane/controllers/node/zones.h"

namespace keelson::controllers {

class NodeLifecycleController : public Controller {
 public:
  NodeLifecycleController(client::RestClient api, client::InformerFactory& informers,
                          client::EventRecorder& events, Clock& clock, const Options& options);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a node

 private:
  // The last sign of life of a node, measured with the local clock: the node's clock may be wrong.
  struct Pulse {
    std::string uid;
    int64_t renewed = 0;    // renewTime of the Lease, in microseconds
    int64_t heartbeat = 0;  // of the Ready condition
    SteadyTime last;
    bool pods_marked = false;  // since the node became unhealthy
  };

  Result<Requeue> Look(const std::string& key, std::stop_token stop);
  std::chrono::nanoseconds Silence(const corev1::Node& node) KEELSON_EXCLUDES(mutex_);
  void NoteComingOrGoing(const client::Change<corev1::Node>& change);
  void OnNode(const client::Change<corev1::Node>& change) KEELSON_EXCLUDES(mutex_);
  // `again`: set to the retry delay when the node must wait for the rate limit.
  Eviction EvictionOf(const corev1::Node& node, std::chrono::nanoseconds& again) KEELSON_EXCLUDES(mutex_);
  // True when the node's pods must be marked not ready now. A live kubelet reports its pods' readiness
  // afterwards; for an unresponsive one this controller does it again.
  bool MustMarkPods(const corev1::Node& node) KEELSON_EXCLUDES(mutex_);
  Result<> MarkPodsNotReady(const client::RestClient& api, const std::string& node);
  Result<> ApplyTaints(const client::RestClient& api, const corev1::Node& node, Eviction eviction);

  client::RestClient api_;
  client::EventRecorder& events_;
  const Options options_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<coordinationv1::Lease>& leases_;
  client::Informer<corev1::Pod>& pods_;
  Mutex mutex_;
  std::map<std::string, Pulse> pulses_ KEELSON_GUARDED_BY(mutex_);
  Zones zones_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
