// Carries out what preemption has decided: conditions, deletions and events, on the binders' threads.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "controlplane/scheduler/binders.h"
#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/framework/evictor.h"
#include "controlplane/scheduler/queue/queue.h"
#include "controlplane/scheduler/reports.h"
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/client/informer.h"

namespace keelson::scheduler {

namespace policyv1 = api::policy::v1;

class HttpExtenders;

class Evictions : public Evictor {
 public:
  Evictions(client::RestClient api, client::InformerFactory& informers, Binders& binders, Reports& reports,
            Cache& cache, SchedulingQueue& queue, Clock& clock);

  // Before the first decision. `extenders` outlive this.
  void Ask(const HttpExtenders& extenders) { extenders_ = &extenders; }

  std::shared_ptr<const std::vector<Budget>> Budgets() override;
  void Evict(const PodPtr& pod, const std::string& node, std::vector<PodPtr> victims,
             std::vector<PodPtr> outranked) override;
  bool Consults(const PodInfo& pod) const override;
  Result<> Consult(const PodInfo& pod, const Snapshot& snapshot, VictimsBySlot& victims) override;
  bool Busy(const PodInfo& pod) const override;
  // The cache has it that the pod is going or has gone. Thread safe.
  void Leaves(const PodInfo& pod);

 private:
  struct Job;
  Result<> EvictOne(const PodInfo& victim, const PodInfo& pod);
  // One of the two steps that each victim takes: its eviction is answered, and the cache knows of it.
  void Step(Job& job);

  const client::RestClient api_;
  client::Informer<policyv1::PodDisruptionBudget>& informer_;
  Binders& binders_;
  Reports& reports_;
  Cache& cache_;
  SchedulingQueue& queue_;
  Clock& clock_;
  const HttpExtenders* extenders_ = nullptr;
  std::atomic<bool> stale_{true};
  std::shared_ptr<const std::vector<Budget>> budgets_;
  mutable Mutex mutex_;
  std::set<std::string> busy_ GUARDED_BY(mutex_);  // uids of pods for which others are being evicted
  // Victims by uid that still look as if they stayed.
  std::unordered_multimap<std::string, std::shared_ptr<Job>> leaving_ GUARDED_BY(mutex_);
};

}  // namespace keelson::scheduler
