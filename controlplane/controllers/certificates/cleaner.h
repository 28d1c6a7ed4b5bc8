// Removes CertificateSigningRequests that nobody needs any more: decided ones an hour later, undecided ones
// after a day, and those whose certificate has expired.
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

bool IsOver(const CertificateSigningRequest& request, WallTime now);

}  // namespace keelson::controllers
