// Watches over nodes: one that has fallen silent becomes Unknown, unhealthy ones are tainted, and their pods
// are marked not ready.
//
//   Lease renewed --- silence for the grace period ---> conditions Unknown, taint unreachable:NoSchedule,
//                                                       pods not ready; NoExecute taint (rate limited)
//
// How many nodes get the NoExecute taint at a time: zones.h. When no node at all is healthy, none does.
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
  // When a node last gave a sign of life, by our own clock: theirs may be wrong.
  struct Pulse {
    std::string uid;
    int64_t renewed = 0;    // the Lease's renewTime, microseconds
    int64_t heartbeat = 0;  // of the Ready condition
    SteadyTime last;
    bool pods_marked = false;  // since the node has become unhealthy
  };

  Result<Requeue> Look(const std::string& key, std::stop_token stop);
  std::chrono::nanoseconds Silence(const corev1::Node& node) EXCLUDES(mutex_);
  void NoteComingOrGoing(const client::Change<corev1::Node>& change);
  void OnNode(const client::Change<corev1::Node>& change) EXCLUDES(mutex_);
  // `again`: when to ask again, when it is not yet the node's turn.
  Eviction EvictionOf(const corev1::Node& node, std::chrono::nanoseconds& again) EXCLUDES(mutex_);
  // Whether the node's pods are to be marked not ready now. A kubelet that is alive says itself what becomes
  // of its pods afterwards; for one that is silent nobody else does.
  bool MustMarkPods(const corev1::Node& node) EXCLUDES(mutex_);
  Result<> MarkPodsNotReady(const client::RestClient& api, const std::string& node);
  Result<> ApplyTaints(const client::RestClient& api, const corev1::Node& node, Eviction eviction);

  client::RestClient api_;
  client::EventRecorder& events_;
  const Options options_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<coordinationv1::Lease>& leases_;
  client::Informer<corev1::Pod>& pods_;
  Mutex mutex_;
  std::map<std::string, Pulse> pulses_ GUARDED_BY(mutex_);
  Zones zones_ GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
