// Issues the certificates that have been approved, for the signers of kubernetes.io (certificates.k8s.io,
// "Kubernetes signers"). The authority's files are read for each certificate: new ones need no restart.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "controlplane/controllers/certificates/requests.h"
#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/options.h"

namespace keelson::controllers {

class CertificateSigner : public Controller {
 public:
  CertificateSigner(client::RestClient api, client::InformerFactory& informers, client::EventRecorder&,
                    Clock& clock, CertificateSigning signing);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<std::string> Sign(const CertificateSigningRequest& request);

  client::RestClient api_;
  client::Informer<CertificateSigningRequest>& requests_;
  const CertificateSigning signing_;
};

// How long a certificate is good that is issued now: what is asked for, but neither under ten minutes nor
// more than `most`. Clocks that are up to five minutes behind shall take it too.
http::CertificateTerms TermsOf(const CertificateSigningRequest& request, std::chrono::seconds most,
                               WallTime now);

}  // namespace keelson::controllers
