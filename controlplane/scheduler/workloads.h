// What pods are a part of, from informers: Services that select them, and the controller that owns them. By
// its selector pods are spread that have no constraints of their own.
#pragma once

#include <atomic>

#include "controlplane/scheduler/plugins/plugins.h"
#include "lib/client/informer.h"

namespace keelson::scheduler {

class InformedWorkloads : public WorkloadSelectors {  // thread safe
 public:
  explicit InformedWorkloads(client::InformerFactory& informers);
  std::optional<metav1::LabelSelector> SelectorOf(const PodInfo& pod) const override;
  uint64_t epoch() const override { return epoch_; }

 private:
  client::Informer<corev1::Service>& services_;
  client::Informer<corev1::ReplicationController>& replication_controllers_;
  client::Informer<appsv1::ReplicaSet>& replica_sets_;
  client::Informer<appsv1::StatefulSet>& stateful_sets_;
  std::atomic<uint64_t> epoch_{1};
};

}  // namespace keelson::scheduler
