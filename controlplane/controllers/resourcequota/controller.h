// Maintains the status of ResourceQuotas: `hard` from the spec, `used` from a recount. Admission charges new
// objects; this controller subtracts deleted ones and corrects charges of failed requests.
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
  // A resource that quotas count. Pods, services and claims have usage to evaluate; other resources count
  // objects only.
  struct Counted {
    const api::ResourceInfo* info;
    client::InformerBase* objects;
    bool measured;
  };
  template <typename T>
  void Measure(client::InformerFactory& informers);
  void Count(client::InformerFactory& informers, const api::ResourceInfo& info);
  void Enqueue(std::string_view ns);
  // Enqueues the quotas of a new object's namespace. Admission does not charge an object that is older than
  // the quota, and its informer may deliver it after the quota was counted, because informers are
  // independent. The same holds for the quota itself.
  void NoteCame(const metav1::ObjectMeta& meta);
  void FillStatus(const corev1::ResourceQuota& quota, corev1::ResourceQuotaStatus& status);

  client::RestClient api_;
  // Recounts all quotas with this period, regardless of events.
  const std::chrono::nanoseconds sync_period_;
  client::Informer<corev1::ResourceQuota>& quotas_;
  std::vector<Counted> counted_;
};

}  // namespace keelson::controllers
