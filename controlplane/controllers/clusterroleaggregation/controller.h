// Fills in the rules of ClusterRoles with an aggregationRule. Needed only next to an API server that does not
// aggregate by itself.
#pragma once

#include "controlplane/controllers/common/controller.h"

namespace keelson::controllers {

class ClusterRoleAggregationController : public Controller {
 public:
  ClusterRoleAggregationController(client::RestClient api, client::InformerFactory& informers,
                                   client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a role

 private:
  client::RestClient api_;
  client::Informer<rbacv1::ClusterRole>& roles_;
};

}  // namespace keelson::controllers
