// Approves the kubelets' client certificate requests. The requester needs `create` on
// certificatesigningrequests/nodeclient (first certificate) or /selfnodeclient (renewal for the same node) in
// certificates.k8s.io. This controller does not approve serving certificates: that needs a person, or a
// controller that knows the node's addresses.
#pragma once

#include "controlplane/controllers/certificates/requests.h"
#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class CertificateApprover : public Controller {
 public:
  CertificateApprover(client::RestClient api, client::InformerFactory& informers, client::EventRecorder&,
                      Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<CertificateSigningRequest>& requests_;
};

}  // namespace keelson::controllers
