// Gives Services of type LoadBalancer their addresses and takes these back. What was given stands in the
// Services' status and nowhere else: whoever takes over from a controller that was killed reads it there.
// Address and finalizer come and go in one write, by way of the status: the role that Kubernetes has for this
// controller allows no other.
#pragma once

#include <map>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/latest_writes.h"
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
  // Those that lack an address, or share one that they should not.
  void EnqueueWanting();
  // Notes what the Service has; true: somebody else may have some of it now.
  bool Hold(const std::string& key, std::vector<IpAddress> addresses);
  // The key of an older Service that has the address, or of any other if this one has it not; "": nobody.
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
  LatestWrites written_;
  Mutex giving_out_;  // held from the choice of a pool's address until the status tells of it
  mutable Mutex mutex_;
  std::map<std::string, std::vector<IpAddress>> held_ GUARDED_BY(mutex_);  // by Service, also just written
};

}  // namespace keelson::controllers
