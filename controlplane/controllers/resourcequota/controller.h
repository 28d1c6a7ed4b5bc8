// Status of ResourceQuotas: hard as the spec has it, used as counted. Admission charges what comes; what goes
// is given back here, as is what a lost race has charged for nothing.
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"
#include "lib/api/types.h"

namespace keelson::controllers {

class ResourceQuotaController : public Controller {
 public:
  ResourceQuotaController(client::RestClient api, client::InformerFactory& informers,
                          client::EventRecorder& events, Clock& clock,
                          std::chrono::nanoseconds sync_period = std::chrono::minutes(5));
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  // One kind that quotas can count. Pods, services and claims are measured, of all others there is the
  // number.
  struct Counted {
    const api::ResourceInfo* info;
    client::InformerBase* objects;
    bool measured;
  };
  template <typename T>
  void Measure(client::InformerFactory& informers);
  void Count(client::InformerFactory& informers, const api::ResourceInfo& info);
  void Enqueue(std::string_view ns);
  // An object that was there before a quota was not charged by admission, and may be seen after the quota has
  // been counted: the informers of two kinds do not wait for each other. That is also so of the quota itself.
  void NoteCame(const metav1::ObjectMeta& meta);
  void FillStatus(const corev1::ResourceQuota& quota, corev1::ResourceQuotaStatus& status);

  client::RestClient api_;
  // Everything is counted anew this often, whatever has or has not been seen to happen.
  const std::chrono::nanoseconds sync_period_;
  client::Informer<corev1::ResourceQuota>& quotas_;
  std::vector<Counted> counted_;
};

}  // namespace keelson::controllers
