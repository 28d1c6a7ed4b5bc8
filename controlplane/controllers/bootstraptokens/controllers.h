// BootstrapSigner signs the ConfigMap cluster-info in kube-public with each bootstrap token, so that joining
// nodes can verify it. TokenCleaner deletes expired tokens.
#pragma once

#include "controlplane/controllers/bootstraptokens/tokens.h"
#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class BootstrapSigner : public Controller {
 public:
  BootstrapSigner(client::RestClient api, client::InformerFactory& informers, client::EventRecorder&,
                  Clock& clock);
  // One key: each sync writes the whole ConfigMap.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<corev1::ConfigMap>& maps_;
  client::Informer<corev1::Secret>& tokens_;
};

class TokenCleaner : public Controller {
 public:
  TokenCleaner(client::RestClient api, client::InformerFactory& informers, client::EventRecorder&,
               Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<corev1::Secret>& tokens_;
};

}  // namespace keelson::controllers
