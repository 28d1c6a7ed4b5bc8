// Retires tokens that accounts were once given unasked: those in Secrets which an account lists, which no pod
// mounts, and which nobody has used for long. First they are marked as invalid, then removed.
#pragma once

#include <chrono>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/serviceaccounttokens/controller.h"

namespace keelson::controllers {

class LegacyTokenCleaner : public Controller {
 public:
  // `period`: for how long a token must not have been used to be marked, and marked to be removed.
  LegacyTokenCleaner(client::RestClient api, client::InformerFactory& informers, client::EventRecorder&,
                     Clock& clock, std::chrono::milliseconds period);
  // One key, once a day.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  bool IsMounted(const corev1::Secret& secret) const;
  Result<> Retire(const corev1::Secret& secret, const std::string& limit, const client::RestClient& api);

  client::RestClient api_;
  client::Informer<corev1::ServiceAccount>& accounts_;
  client::Informer<corev1::Secret>& secrets_;
  client::Informer<corev1::Pod>& pods_;
  const std::chrono::milliseconds period_;
};

}  // namespace keelson::controllers
