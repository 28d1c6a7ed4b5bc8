#include "controlplane/scheduler/api_executor.h"

#include <algorithm>

#include "controlplane/scheduler/extender/extender.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

// One pod's preemption. The pod is not scheduled again before the last step of the last victim: while the
// cache still counts a victim, the pod could preempt others on another node.
struct ApiPreemptionExecutor::Preemption {
  PodPtr pod;
  std::string node;
  std::atomic<size_t> steps_left{0};
};

ApiPreemptionExecutor::ApiPreemptionExecutor(client::RestClient api, client::InformerFactory& informers,
                                             ApiDispatcher& dispatcher, PodStatusUpdater& pod_status,
                                             Cache& cache, SchedulingQueue& queue, Clock& clock)
    : api_(std::move(api)),
      informer_(informers.Get<policyv1::PodDisruptionBudget>()),
      dispatcher_(dispatcher),
      pod_status_(pod_status),
      cache_(cache),
      queue_(queue),
      clock_(clock) {
  informer_.AddHandler(
      [this](const client::Change<policyv1::PodDisruptionBudget>&) { budgets_stale_ = true; });
}

std::shared_ptr<const std::vector<DisruptionBudget>> ApiPreemptionExecutor::DisruptionBudgets() {
  if (!budgets_stale_.exchange(false)) return budgets_;
  std::vector<DisruptionBudget> out;
  for (const auto& budget : informer_.List()) {
    if (!budget->spec().has_selector()) continue;  // selects no pod; an empty selector selects all
    auto selector = api::LabelSelector::From(budget->spec().selector());
    if (!selector) continue;
    DisruptionBudget& one = out.emplace_back(DisruptionBudget{
        budget->metadata().namespace_(), *std::move(selector), budget->status().disruptions_allowed(), {}});
    for (const auto& [name, since] : budget->status().disrupted_pods()) one.disrupted_pods.push_back(name);
    std::sort(one.disrupted_pods.begin(), one.disrupted_pods.end());
  }
  budgets_ = std::make_shared<const std::vector<DisruptionBudget>>(std::move(out));
  return budgets_;
}

bool ApiPreemptionExecutor::ExtendersSupportPreemption(const PodInfo& pod) const {
  return extenders_ && extenders_->SupportsPreemption(pod);
}

Result<> ApiPreemptionExecutor::CallExtenders(const PodInfo& pod, const Snapshot& snapshot,
                                              NodeToVictims& victims) {
  return extenders_->ProcessPreemption(pod, snapshot, victims);
}

bool ApiPreemptionExecutor::IsPodRunningPreemption(const PodInfo& pod) const {
  MutexLock lock(mutex_);
  return preempting_.contains(pod.uid);
}

void ApiPreemptionExecutor::PrepareCandidateAsync(const PodPtr& pod, const std::string& node,
                                                  std::vector<PodPtr> victims,
                                                  std::vector<PodPtr> lower_priority_nominated_pods) {
  for (const PodPtr& other : lower_priority_nominated_pods) {
    cache_.Nominate(other, "");
    pod_status_.ClearNominatedNodeName(other);
    queue_.Activate(other->key);
  }
  std::erase_if(victims, [](const PodPtr& victim) { return victim->terminating; });
  if (victims.empty()) return;
  auto preemption = std::make_shared<Preemption>();
  preemption->pod = pod;
  preemption->node = node;
  preemption->steps_left = 2 * victims.size();
  {
    MutexLock lock(mutex_);
    preempting_.insert(pod->uid);
    for (const PodPtr& victim : victims) awaited_victims_.emplace(victim->uid, preemption);
  }
  for (const PodPtr& victim : victims) {
    if (!cache_.Holds(*victim)) OnPodLeaving(*victim);  // it left before it was awaited
    dispatcher_.Submit(victim->uid, [this, preemption, victim] {
      if (Result<> evicted = PreemptPod(*victim, *preemption->pod); evicted) {
        pod_status_.Preempted(*victim, *preemption->pod, preemption->node);
      } else if (!evicted.error().Is(Code::kNotFound)) {
        if (!evicted.error().Is(Code::kCancelled)) {
          log::Warn("Cannot evict a pod",
                    {{"pod", victim->key}, {"for", preemption->pod->key}, {"err", evicted.error()}});
        }
        OnPodLeaving(*victim);  // nothing to wait for
      }
      FinishStep(*preemption);
    });
  }
}

void ApiPreemptionExecutor::OnPodLeaving(const PodInfo& pod) {
  std::vector<std::shared_ptr<Preemption>> preemptions;
  {
    MutexLock lock(mutex_);
    const auto [first, last] = awaited_victims_.equal_range(pod.uid);
    for (auto it = first; it != last; ++it) preemptions.push_back(std::move(it->second));
    awaited_victims_.erase(first, last);
  }
  for (const auto& preemption : preemptions) FinishStep(*preemption);
}

void ApiPreemptionExecutor::FinishStep(Preemption& preemption) {
  if (preemption.steps_left.fetch_sub(1) > 1) return;
  {
    MutexLock lock(mutex_);
    preempting_.erase(preemption.pod->uid);
  }
  queue_.Activate(preemption.pod->key);
}

Result<> ApiPreemptionExecutor::PreemptPod(const PodInfo& victim, const PodInfo& pod) {
  corev1::PodCondition condition;
  condition.set_type(std::string(k8s::kDisruptionTarget));
  condition.set_status("True");
  condition.set_reason("PreemptionByScheduler");
  condition.set_message(pod.scheduler_name + ": preempting to accommodate a higher priority pod");
  condition.set_observed_generation(victim.generation);
  *condition.mutable_last_transition_time() = api::ToTime(clock_.Now());
  std::string body = R"({"metadata":{"uid":")" + victim.uid + R"("},"status":{"conditions":[)" +
                     api::EncodeJson(condition) + "]}}";
  auto patched = api_.Patch<corev1::Pod>(victim.ns, victim.name, client::PatchType::kStrategicMerge,
                                         std::move(body), "status");
  if (!patched) return patched.error();
  client::DeleteOptions options;
  options.uid = victim.uid;
  return api_.Delete<corev1::Pod>(victim.ns, victim.name, options);
}

}  // namespace keelson::scheduler
