// Deletes PodCertificateRequests 15 minutes after their creation. By then the kubelet has either picked up
// the certificate or given up on the request.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"

namespace keelson::controllers {

using PodCertificateRequest = api::certificates::v1beta1::PodCertificateRequest;

class PodCertificateRequestCleaner : public Controller {
 public:
  PodCertificateRequestCleaner(client::RestClient api, client::InformerFactory& informers,
                               client::EventRecorder&, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<PodCertificateRequest>& requests_;
};

}  // namespace keelson::controllers
