// Creates the PersistentVolumeClaims of pods' generic ephemeral volumes, named "<pod>-<volume>". The pod owns
// them, so the garbage collector deletes them with it.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "lib/api/types.h"

namespace keelson::controllers {

class EphemeralVolumeController : public Controller {
 public:
  EphemeralVolumeController(client::RestClient api, client::InformerFactory& informers,
                            client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<> Ensure(const client::RestClient& api, const corev1::Pod& pod, const corev1::Volume& volume);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
};

}  // namespace keelson::controllers
