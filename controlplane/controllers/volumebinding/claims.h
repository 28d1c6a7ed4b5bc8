// Binds claims: finds a matching volume, keeps an existing binding, or requests dynamic provisioning. For
// WaitForFirstConsumer classes the scheduler selects the node or reserves the volume.
#pragma once

#include <map>
#include <string>

#include "controlplane/controllers/common/consistency_store.h"
#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/volumebinding/match.h"

namespace keelson::controllers {

class ClaimBinder : public Controller {
 public:
  ClaimBinder(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
              Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<> SyncBound(const client::RestClient& api, const PersistentVolumeClaim& claim);
  Result<> SyncUnbound(const client::RestClient& api, const PersistentVolumeClaim& claim);
  // Syncs an unbound claim that names a volume.
  Result<> SyncNamed(const client::RestClient& api, const PersistentVolumeClaim& claim);
  // No volume matches: applies the default class, or requests provisioning.
  Result<> Await(const client::RestClient& api, PersistentVolumeClaim claim, const StorageClass* own);
  Result<> Provision(const client::RestClient& api, PersistentVolumeClaim& claim, const StorageClass* own);
  Result<> Lose(const client::RestClient& api, PersistentVolumeClaim claim, const char* reason,
                const char* message);
  void TellWaiting(const PersistentVolumeClaim& claim);
  // Records an event unless it equals the claim's last one.
  void Tell(const PersistentVolumeClaim& claim, const char* type, const char* reason, std::string message);
  void OnVolume(const client::Change<PersistentVolume>& change);
  void OnClass(const client::Change<StorageClass>& change);
  // Enqueues all claims of the class that have no volume.
  void EnqueueUnbound(const std::string& class_name);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<PersistentVolumeClaim>& claims_;
  client::Informer<PersistentVolume>& volumes_;
  client::Informer<StorageClass>& classes_;
  client::Informer<corev1::Pod>& pods_;
  ConsistencyStore written_;
  std::map<std::string, std::string> told_;  // by claim; used by the single worker only
};

// Indexes of volumes for ClaimBinder and VolumeBinder: by the key of the claim in claimRef, and, without
// claimRef, by class.
extern const char kByClaimRef[], kFreeByClass[];
void IndexVolumes(client::Informer<PersistentVolume>& volumes);

}  // namespace keelson::controllers
