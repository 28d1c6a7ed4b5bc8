// Creates the ServiceAccount "default" in every active namespace, and recreates it when it is deleted.
#pragma once

#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class ServiceAccountController : public Controller {
 public:
  ServiceAccountController(client::RestClient api, client::InformerFactory& informers,
                           client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a namespace

 private:
  client::RestClient api_;
  client::Informer<corev1::Namespace>& namespaces_;
  client::Informer<corev1::ServiceAccount>& accounts_;
};

}  // namespace keelson::controllers
