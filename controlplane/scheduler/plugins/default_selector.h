// The default selectors of pods, from informers: those of the Services that select a pod and of the controller
// that owns it. By them PodTopologySpread spreads pods without constraints of their own.
#pragma once

#include <atomic>

#include "controlplane/scheduler/plugins/plugins.h"
#include "lib/client/informer.h"

namespace keelson::scheduler {

class InformerDefaultSelectors : public DefaultSelectors {  // thread safe
 public:
  explicit InformerDefaultSelectors(client::InformerFactory& informers);
  std::optional<metav1::LabelSelector> DefaultSelector(const PodInfo& pod) const override;
  uint64_t epoch() const override { return epoch_; }

 private:
  client::Informer<corev1::Service>& services_;
  client::Informer<corev1::ReplicationController>& replication_controllers_;
  client::Informer<appsv1::ReplicaSet>& replica_sets_;
  client::Informer<appsv1::StatefulSet>& stateful_sets_;
  std::atomic<uint64_t> epoch_{1};
};

}  // namespace keelson::scheduler
