// Sets the DisruptionTarget condition of a pod to False when the pod is still not terminating two minutes
// after the condition became True: the announced disruption failed.
#pragma once

#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class StaleDisruptionController : public Controller {
 public:
  StaleDisruptionController(client::RestClient api, client::InformerFactory& informers,
                            client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a pod

 private:
  client::RestClient api_;
  client::Informer<corev1::Pod>& pods_;
};

}  // namespace keelson::controllers
