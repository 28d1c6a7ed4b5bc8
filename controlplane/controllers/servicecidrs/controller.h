// Maintains the Ready condition and the finalizer of ServiceCIDRs. A ServiceCIDR is deleted only when each
// IPAddress in it is also in another ServiceCIDR (KEP-1880).
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "lib/api/proto/networking_v1.pb.h"

namespace keelson::controllers {

class ServiceCidrController : public Controller {
 public:
  ServiceCidrController(client::RestClient api, client::InformerFactory& informers,
                        client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  using Cidr = api::networking::v1::ServiceCIDR;
  using Address = api::networking::v1::IPAddress;
  void EnqueueAround(const Address& address);
  void EnqueueOverlapping(const Cidr& cidr);
  bool MayGo(const Cidr& cidr) const;
  Result<Requeue> End(const client::RestClient& api, const Cidr& cidr);
  Result<> Keep(const client::RestClient& api, const Cidr& cidr);
  Result<> SetReady(const client::RestClient& api, const Cidr& cidr, bool ready);

  client::RestClient api_;
  client::Informer<Cidr>& cidrs_;
  client::Informer<Address>& addresses_;
};

}  // namespace keelson::controllers
