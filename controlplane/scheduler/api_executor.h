// Carries preemption out through the API server: DisruptionTarget conditions, deletions and events, on the
// dispatcher's threads.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/dispatcher/api_dispatcher.h"
#include "controlplane/scheduler/dispatcher/pod_status_updater.h"
#include "controlplane/scheduler/preemption/executor.h"
#include "controlplane/scheduler/queue/queue.h"
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/client/informer.h"

namespace keelson::scheduler {

namespace policyv1 = api::policy::v1;

class HttpExtenders;

// Threads: see PreemptionExecutor. References outlive this.
class ApiPreemptionExecutor : public PreemptionExecutor {
 public:
  ApiPreemptionExecutor(client::RestClient api, client::InformerFactory& informers, ApiDispatcher& dispatcher,
                        PodStatusUpdater& pod_status, Cache& cache, SchedulingQueue& queue, Clock& clock);

  // Lets `extenders`, which outlive this, take part in the choice. Before the first scheduling cycle.
  void SetExtenders(const HttpExtenders& extenders) { extenders_ = &extenders; }

  std::shared_ptr<const std::vector<DisruptionBudget>> DisruptionBudgets() override;
  void PrepareCandidateAsync(const PodPtr& pod, const std::string& node, std::vector<PodPtr> victims,
                             std::vector<PodPtr> lower_priority_nominated_pods) override;
  bool ExtendersSupportPreemption(const PodInfo& pod) const override;
  Result<> CallExtenders(const PodInfo& pod, const Snapshot& snapshot, NodeToVictims& victims) override;
  bool IsPodRunningPreemption(const PodInfo& pod) const override;
  // The informers have shown that the pod is terminating or gone, and the cache knows it. Thread safe.
  void OnPodLeaving(const PodInfo& pod);

 private:
  struct Preemption;
  // Sets the DisruptionTarget condition of `victim` and deletes it, for `pod`. Blocks.
  Result<> PreemptPod(const PodInfo& victim, const PodInfo& pod);
  // Counts one of the two steps of each victim: the API server has answered, and the cache has seen it leave.
  void FinishStep(Preemption& preemption);

  const client::RestClient api_;
  client::Informer<policyv1::PodDisruptionBudget>& informer_;
  ApiDispatcher& dispatcher_;
  PodStatusUpdater& pod_status_;
  Cache& cache_;
  SchedulingQueue& queue_;
  Clock& clock_;
  const HttpExtenders* extenders_ = nullptr;
  std::atomic<bool> budgets_stale_{true};
  std::shared_ptr<const std::vector<DisruptionBudget>> budgets_;
  mutable Mutex mutex_;
  std::set<std::string> preempting_ KEELSON_GUARDED_BY(mutex_);  // uids of pods with a preemption under way
  // By uid of a victim that the cache has not seen leave.
  std::unordered_multimap<std::string, std::shared_ptr<Preemption>> awaited_victims_
      KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::scheduler
