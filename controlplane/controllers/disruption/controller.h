// Maintains the status of PodDisruptionBudgets: currentHealthy, desiredHealthy, expectedPods and
// disruptionsAllowed.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/disruption/plan.h"

namespace keelson::controllers {

class DisruptionController : public Controller {
 public:
  DisruptionController(client::RestClient api, client::InformerFactory& informers,
                       client::EventRecorder& events, Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  using Budget = api::policy::v1::PodDisruptionBudget;
  void EnqueueBudgetsOf(const corev1::Pod& pod);
  Result<disruption::Pods> PodsOf(const Budget& budget) const;
  // Sums the scale of the pods' controllers. Counts pods without a controller in `unmanaged`.
  Result<int64_t> ExpectedScale(const client::RestClient& api, const std::string& ns,
                                const disruption::Pods& pods, int& unmanaged) const;
  // `pod`: the name of a pod of the owner, for messages.
  Result<std::pair<std::string, int64_t>> ScaleOf(const client::RestClient& api, const std::string& ns,
                                                  const metav1::OwnerReference& owner,
                                                  const std::string& pod) const;
  Result<Requeue> Sync(const client::RestClient& api, const Budget& budget);
  Result<> Store(const client::RestClient& api, const Budget& budget,
                 const api::policy::v1::PodDisruptionBudgetStatus& status);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<Budget>& budgets_;
  client::Informer<corev1::Pod>& pods_;
  client::Informer<appsv1::Deployment>& deployments_;
  client::Informer<appsv1::ReplicaSet>& sets_;
  client::Informer<appsv1::StatefulSet>& stateful_sets_;
  client::Informer<corev1::ReplicationController>& controllers_;
};

}  // namespace keelson::controllers
