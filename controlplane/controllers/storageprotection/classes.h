// Protects VolumeAttributesClasses in use: a class keeps the finalizer kubernetes.io/vac-protection until no
// claim and no volume names it.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/types.h"

namespace keelson::controllers {

class ClassProtectionController : public Controller {
 public:
  using Class = api::storage::v1::VolumeAttributesClass;
  ClassProtectionController(client::RestClient api, client::InformerFactory& informers,
                            client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<bool> IsUsed(const client::RestClient& api, const std::string& name) const;

  client::RestClient api_;
  client::Informer<Class>& classes_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
  client::Informer<corev1::PersistentVolume>& volumes_;
};

}  // namespace keelson::controllers
