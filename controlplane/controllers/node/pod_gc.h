// Deletes pods that no kubelet will delete: bound to deleted nodes, terminating without a node, terminating
// on out-of-service nodes, and finished pods beyond a threshold.
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class PodGcController : public Controller {
 public:
  struct Why {
    const char *label, *text;  // for metrics, and for the log
    // Set the DisruptionTarget condition, which a Job's pod failure policy may match
    bool disruption = false;
  };
  PodGcController(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
                  Clock& clock, int terminated_threshold);
  // One key, every 20 seconds.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<> Remove(const client::RestClient& api, const corev1::Pod& pod, const Why& why);
  std::vector<std::string> NodesOfPods() KEELSON_EXCLUDES(mutex_);
  Result<bool> IsNodeGone(const client::RestClient& api, const std::string& node);

  client::RestClient api_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<corev1::Node>& nodes_;
  const int terminated_threshold_;
  Mutex mutex_;
  std::map<std::string, int> pods_on_ KEELSON_GUARDED_BY(mutex_);  // by node
  // Nodes that pods name but that do not exist; used by Reconcile() only
  std::map<std::string, SteadyTime> missing_since_;
};

}  // namespace keelson::controllers
