// Maintains the phase of volumes: Available, Bound, and Released when the claim is gone; then the reclaim
// policy applies. The external provisioner deletes the storage itself.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/volumebinding/match.h"

namespace keelson::controllers {

class VolumeBinder : public Controller {
 public:
  VolumeBinder(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
               Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<> Sync(const client::RestClient& api, PersistentVolume volume);
  // Returns the claim that claimRef names, with matching UID; null: it does not exist.
  Result<std::shared_ptr<const PersistentVolumeClaim>> ClaimBehind(const client::RestClient& api,
                                                                   const PersistentVolume& volume);
  Result<> DeleteHostPath(const client::RestClient& api, PersistentVolume& volume);
  Result<> Release(const client::RestClient& api, PersistentVolume volume);
  Result<> Fail(const client::RestClient& api, PersistentVolume& volume, const char* reason,
                const std::string& message);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<PersistentVolumeClaim>& claims_;
  client::Informer<PersistentVolume>& volumes_;
};

}  // namespace keelson::controllers
