// Deletes CertificateSigningRequests: approved, denied or failed ones after an hour, pending ones after a
// day, and those with an expired certificate.
#pragma once

#include "controlplane/controllers/certificates/requests.h"
#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class CertificateCleaner : public Controller {
 public:
  CertificateCleaner(client::RestClient api, client::InformerFactory& informers, client::EventRecorder&,
                     Clock& clock);
  // One key, every hour.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<CertificateSigningRequest>& requests_;
};

// True when the request is due for deletion.
bool IsOver(const CertificateSigningRequest& request, WallTime now);

}  // namespace keelson::controllers
