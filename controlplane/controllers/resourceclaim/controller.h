// Makes the ResourceClaims of pods from their ResourceClaimTemplates, and takes claims from pods that need them no longer
// (KEP-4381; upstream's pkg/controller/resourceclaim).
//
// Keys "pod:NAMESPACE/NAME": a generated claim is owned by its pod, has the annotation resource.kubernetes.io/pod-claim-name,
// and its name is written to the pod's status.resourceClaimStatuses. A pod that has a node already, because no scheduler
// that knows claims has placed it, is added to status.reservedFor of its allocated claims.
//
// Keys "claim:NAMESPACE/NAME": pods that are gone or finished leave status.reservedFor. The last one takes the allocation
// with it, and the finalizer. The generated claim of a pod that will not run again is deleted before the pod is.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/resourceclaim/deleted_pods.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

namespace resourcev1 = api::resource::v1;

class ResourceClaimController : public Controller {
 public:
  using Claim = resourcev1::ResourceClaim;
  static constexpr char kPodClaimName[] = "resource.kubernetes.io/pod-claim-name";
  ResourceClaimController(client::RestClient api, client::InformerFactory& informers,
                          client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  void PodChanged(const corev1::Pod& pod, bool deleted);
  void ClaimChanged(const client::Change<Claim>& change);
  // Whether a sync of the pod would write something.
  bool NeedsWork(const corev1::Pod& pod) const;

  Result<> SyncPod(const client::RestClient& api, const std::string& key);
  // The name of the entry's claim if it has to be added to the pod's status, else empty.
  Result<std::string> EnsureClaim(const client::RestClient& api, const corev1::Pod& pod,
                                  const corev1::PodResourceClaim& entry);
  Result<std::string> MakeClaim(const client::RestClient& api, const corev1::Pod& pod,
                                const corev1::PodResourceClaim& entry);
  std::string FindMade(const corev1::Pod& pod, const corev1::PodResourceClaim& entry);
  Result<> Reserve(const client::RestClient& api, const corev1::Pod& pod);

  // Runs no longer, and never will.
  static bool IsDone(const corev1::Pod& pod);
  Result<> SyncClaim(const client::RestClient& api, const std::string& key);
  Result<bool> StillUses(const client::RestClient& api, const Claim& claim,
                         const resourcev1::ResourceClaimConsumerReference& user) const;
  // Deletes a generated claim whose pod runs no longer.
  Result<> DeleteIfNotNeeded(const client::RestClient& api, const Claim& claim) const;

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<Claim>& claims_;
  client::Informer<resourcev1::ResourceClaimTemplate>& templates_;
  DeletedPods deleted_;
  Mutex mutex_;
  // Keys of claims that the informer may not show yet, by the pod's UID and the entry's name: without them a second sync
  // would make another claim.
  std::map<std::pair<std::string, std::string>, std::string> made_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
