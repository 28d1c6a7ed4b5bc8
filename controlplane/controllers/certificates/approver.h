// Approves what kubelets ask for, if whoever asks may have it: `create` on
// certificatesigningrequests/nodeclient (a first certificate) or /selfnodeclient (the next one of the same
// node) in certificates.k8s.io. Serving certificates are for people, or controllers that know the nodes'
// addresses, to approve.
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
