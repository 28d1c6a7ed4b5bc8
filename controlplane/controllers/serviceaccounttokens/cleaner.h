// Retires auto-generated legacy tokens: Secrets that a ServiceAccount lists, that no pod mounts, and that
// have been unused for `period`. It first labels them invalid, and deletes them after another `period`
// (KEP-2799).
#pragma once

#include <chrono>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/serviceaccounttokens/controller.h"

namespace keelson::controllers {

class LegacyTokenCleaner : public Controller {
 public:
  // `period`: unused time before a token is marked invalid, and the time from then to its deletion.
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
