// Keeps core/v1 Endpoints of Services that select pods, for readers of the older API (kubectl describe
// service, older proxies).
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/endpoints/endpoint_pods.h"
#include "controlplane/controllers/endpoints/trigger_time.h"

namespace keelson::controllers {

// The subsets of a Service: addresses with equal ports together, ready and not ready apart, all sorted.
std::vector<corev1::EndpointSubset> DesiredSubsets(const corev1::Service& service,
                                                   const std::vector<EndpointPodPointer>& pods);

// Endpoints hold a thousand addresses: of more, those that are not ready give way first, each subset by its
// part. Returns whether any had to.
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
