// Evicts pods from nodes with NoExecute taints that the pods do not tolerate, or only for a limited time.
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class TaintEvictionController : public Controller {
 public:
  TaintEvictionController(client::RestClient api, client::InformerFactory& informers,
                          client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a pod

 private:
  void OnNode(const client::Change<corev1::Node>& change);
  // Returns when the pod must leave its node (null: unknown node); nullopt: never. Records an event when a
  // scheduled eviction is cancelled.
  std::optional<WallTime> Schedule(const corev1::Pod& pod, const corev1::Node* node) KEELSON_EXCLUDES(mutex_);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<corev1::Node>& nodes_;
  Mutex mutex_;
  std::map<std::string, WallTime> first_seen_ KEELSON_GUARDED_BY(mutex_);  // by UID; pods that must leave
};

}  // namespace keelson::controllers
