// Assigns addresses to Services of type LoadBalancer, and releases them. Assigned addresses are stored in the
// Services' status only, so a new controller continues from there. The address and the finalizer change in
// one write through the status subresource, because the system:service-controller role allows no other write.
#pragma once

#include <map>

#include "controlplane/controllers/common/consistency_store.h"
#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/loadbalancer/plan.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class LoadBalancerController : public Controller {
 public:
  LoadBalancerController(client::RestClient api, client::InformerFactory& informers,
                         client::EventRecorder& events, Clock& clock, AddressPool pool);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  void OnService(const client::Change<corev1::Service>& change);
  void OnNode(const client::Change<corev1::Node>& change);
  void OnPod(const client::Change<corev1::Pod>& change);
  // Enqueues Services that lack an address, or that share one they must not share.
  void EnqueueWanting();
  // Records the Service's addresses. Returns true when another Service may take an address that became free.
  bool Hold(const std::string& key, std::vector<IpAddress> addresses);
  // Returns the key of an older Service that has the address, or of any other Service if this one does not
  // have it; "": none.
  std::string HolderBefore(const corev1::Service& service, const IpAddress& address) const;
  BalancerPlan PlanAtNodes(const corev1::Service& service) const;
  Result<> Serve(const client::RestClient& api, const corev1::Service& service);
  Result<> Publish(const client::RestClient& api, corev1::Service service, const BalancerPlan& plan);
  Result<> CleanUp(const client::RestClient& api, corev1::Service service);

  client::RestClient api_;
  client::EventRecorder& events_;
  const AddressPool pool_;
  client::Informer<corev1::Service>& services_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<discoveryv1::EndpointSlice>& slices_;
  ConsistencyStore written_;
  Mutex giving_out_;  // held from the choice of a pool address until the status is written
  mutable Mutex mutex_;
  // By Service, including addresses just written
  std::map<std::string, std::vector<IpAddress>> held_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
