// Protects claims and volumes in use. A claim keeps the finalizer kubernetes.io/pvc-protection while a pod
// uses it; a volume keeps kubernetes.io/pv-protection while it is bound to a claim.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "lib/api/types.h"

namespace keelson::controllers {

class ClaimProtectionController : public Controller {
 public:
  ClaimProtectionController(client::RestClient api, client::InformerFactory& informers,
                            client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
  client::Informer<corev1::Pod>& pods_;
};

class VolumeProtectionController : public Controller {
 public:
  VolumeProtectionController(client::RestClient api, client::InformerFactory& informers,
                             client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<corev1::PersistentVolume>& volumes_;
};

}  // namespace keelson::controllers
