// A claim that asks for more than its volume has is expanded by the driver's own resizer. This controller,
// as upstream's does for drivers that are not built in, says so on the claim; it writes nothing else.
#pragma once

#include "controlplane/controllers/controller.h"
#include "lib/api/types.h"

namespace keelson::controllers {

class VolumeExpandController : public Controller {
 public:
  VolumeExpandController(client::RestClient api, client::InformerFactory& informers,
                         client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::EventRecorder& events_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
  client::Informer<corev1::PersistentVolume>& volumes_;
};

}  // namespace keelson::controllers
