// Publishes the cluster's CA as ConfigMap kube-root-ca.crt in every namespace. Projected token volumes of
// pods include it.
#pragma once

#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class RootCaPublisher : public Controller {
 public:
  RootCaPublisher(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
                  Clock& clock, std::string ca_pem);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a namespace

 private:
  Result<Requeue> Publish(const std::string& key, std::stop_token stop);

  client::RestClient api_;
  client::Informer<corev1::Namespace>& namespaces_;
  client::Informer<corev1::ConfigMap>& maps_;
  const std::string ca_pem_;
};

}  // namespace keelson::controllers
