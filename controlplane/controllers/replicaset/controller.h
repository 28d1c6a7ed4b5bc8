// Keeps the number of pods of a ReplicaSet.
#pragma once

#include <atomic>
#include <optional>

#include "controlplane/controllers/claim.h"
#include "controlplane/controllers/controller.h"
#include "controlplane/controllers/replicaset/expectations.h"
#include "controlplane/controllers/replicaset/plan.h"
#include "lib/api/selector.h"

namespace keelson::controllers {

class ReplicaSetController : public Controller {
 public:
  ReplicaSetController(client::RestClient api, client::InformerFactory& informers,
                       client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  void OnSet(const client::Change<appsv1::ReplicaSet>& change);
  void OnPod(const client::Change<corev1::Pod>& change);
  void EnqueueMatching(const corev1::Pod& orphan);
  // The set that an owner reference points to, by UID; nullopt when it is none of ours.
  std::optional<std::string> KeyOfOwner(const corev1::Pod& pod) const;

  struct Claimed {
    PodPointers active;
    int terminating = 0;
  };
  Result<Claimed> ClaimPods(const appsv1::ReplicaSet& set, const api::LabelSelector& selector,
                            const client::RestClient& api);
  // Creates or deletes until spec.replicas is met; returns the first failure.
  Result<> ManageReplicas(const std::string& key, const appsv1::ReplicaSet& set, const PodPointers& active,
                          const client::RestClient& api);
  Result<> CreatePods(const std::string& key, const appsv1::ReplicaSet& set, int count,
                      const client::RestClient& api);
  Result<> DeletePods(const std::string& key, const appsv1::ReplicaSet& set, const PodPointers& pods,
                      const client::RestClient& api);
  PodPointers RelatedPods(const appsv1::ReplicaSet& set) const;

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<appsv1::ReplicaSet>& sets_;
  client::Informer<corev1::Pod>& pods_;
  Expectations expectations_;
};

}  // namespace keelson::controllers
