// Issues certificates for approved requests of the kubernetes.io signers (certificates.k8s.io, "Kubernetes
// signers"). It reads the CA files for each certificate, so replacing them needs no restart.
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

// The validity of a certificate issued now: spec.expirationSeconds, at least ten minutes, at most `most`.
// notBefore is five minutes ago, to allow for clock skew.
crypto::CertificateTerms TermsOf(const CertificateSigningRequest& request, std::chrono::seconds most,
                                 WallTime now);

}  // namespace keelson::controllers
