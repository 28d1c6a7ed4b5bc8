// Reports that an external resizer expands a claim that requests more than its volume has. For a migrated
// in-tree driver it annotates the claim with the resizer's name.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "lib/api/types.h"

namespace keelson::controllers {

class VolumeExpandController : public Controller {
 public:
  VolumeExpandController(client::RestClient api, client::InformerFactory& informers,
                         client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
  client::Informer<corev1::PersistentVolume>& volumes_;
};

}  // namespace keelson::controllers
