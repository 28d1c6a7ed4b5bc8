// Binds claims: each looks for the volume that fits it, keeps to the one it has, or asks a provisioner for
// one. Claims of classes that wait for their first consumer are left to the scheduler, which names the node
// or reserves the volume.
#pragma once

#include <map>
#include <string>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/latest_writes.h"
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
  // The claim names a volume.
  Result<> SyncNamed(const client::RestClient& api, const PersistentVolumeClaim& claim);
  // Nothing fits: a default class may, or somebody makes what does.
  Result<> Await(const client::RestClient& api, PersistentVolumeClaim claim, const StorageClass* own);
  Result<> Provision(const client::RestClient& api, PersistentVolumeClaim& claim, const StorageClass* own);
  Result<> Lose(const client::RestClient& api, PersistentVolumeClaim claim, const char* reason,
                const char* message);
  void TellWaiting(const PersistentVolumeClaim& claim);
  // Each claim hears the same once, however often it is looked at.
  void Tell(const PersistentVolumeClaim& claim, const char* type, const char* reason, std::string message);
  void OnVolume(const client::Change<PersistentVolume>& change);
  void OnClass(const client::Change<StorageClass>& change);
  // All claims without a volume that name this class.
  void EnqueueUnbound(const std::string& class_name);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<PersistentVolumeClaim>& claims_;
  client::Informer<PersistentVolume>& volumes_;
  client::Informer<StorageClass>& classes_;
  client::Informer<corev1::Pod>& pods_;
  LatestWrites written_;
  std::map<std::string, std::string> told_;  // by claim; the one worker's only
};

// Indexes of volumes, shared by both halves of the binder: by the key of the claim that they name, and of
// those that name none by class.
extern const char kByClaimRef[], kFreeByClass[];
void IndexVolumes(client::Informer<PersistentVolume>& volumes);

}  // namespace keelson::controllers
