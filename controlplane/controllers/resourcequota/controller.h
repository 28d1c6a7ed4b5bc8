// Maintains the status of ResourceQuotas: `hard` from the spec, `used` from a recount. Admission charges new
// objects; this controller subtracts deleted ones and corrects charges of failed requests.
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"
#include "lib/api/types.h"
#include "lib/client/discovered_informers.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::controllers {

class ResourceQuotaController : public Controller {
 public:
  ResourceQuotaController(client::RestClient api, client::InformerFactory& informers,
                          client::EventRecorder& events, Clock& clock,
                          client::DiscoveredInformers& discovered,
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
  // Enqueues the quotas of a new object's namespace that may not have been charged with it: admission does not charge
  // an object that is older than the quota, and its informer may deliver it after the quota was counted, because
  // informers are independent. The recount only raises values: admission may have charged objects meanwhile that no
  // informer knows yet.
  void NoteCame(const metav1::ObjectMeta& meta);
  // False: objects of a custom resource are not known yet; its usage stays what it was.
  bool FillStatus(const corev1::ResourceQuota& quota, corev1::ResourceQuotaStatus& status);
  // Counts the custom resources that `hard` names. False as above.
  bool CountDiscovered(const std::string& ns, const k8s::ResourceList& hard, bool scoped,
                       k8s::ResourceList& used) const;

  client::RestClient api_;
  client::DiscoveredInformers& discovered_;
  // Recounts all quotas with this period, regardless of events.
  const std::chrono::nanoseconds sync_period_;
  client::Informer<corev1::ResourceQuota>& quotas_;
  std::vector<Counted> counted_;
};

}  // namespace keelson::controllers
