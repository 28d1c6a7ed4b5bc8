// Takes back the announcement that a pod is to be disrupted (the condition DisruptionTarget) when the pod is
// still there two minutes later: whoever made it has failed.
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
