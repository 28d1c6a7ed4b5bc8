// The end of claims and volumes: a claim goes when no pod uses it, a volume when it is bound to no claim.
// Until then they keep their finalizer kubernetes.io/pvc-protection or kubernetes.io/pv-protection.
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
