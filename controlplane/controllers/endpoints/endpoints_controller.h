// Maintains core/v1 Endpoints of Services with a selector, for clients of the older API (kubectl describe
// service, older proxies).
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/endpoints/endpoint_pods.h"
#include "controlplane/controllers/endpoints/trigger_time.h"

namespace keelson::controllers {

// The subsets of a Service. Addresses with equal ports share a subset; ready and not-ready addresses are
// separate; everything is sorted.
std::vector<corev1::EndpointSubset> DesiredSubsets(const corev1::Service& service,
                                                   const std::vector<EndpointPodPointer>& pods);

// Limits Endpoints to a thousand addresses. Removes not-ready addresses first, in proportion from each
// subset. Returns whether it removed any.
bool TruncateSubsets(std::vector<corev1::EndpointSubset>& subsets);

class EndpointsController : public Controller {
 public:
  EndpointsController(client::RestClient api, client::InformerFactory& informers,
                      client::EventRecorder& events, Clock& clock, EndpointPods& pods);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::EventRecorder& events_;
  EndpointPods& pods_;
  client::Informer<corev1::Service>& services_;
  client::Informer<corev1::Endpoints>& endpoints_;
  TriggerTimes trigger_times_;
};

}  // namespace keelson::controllers
