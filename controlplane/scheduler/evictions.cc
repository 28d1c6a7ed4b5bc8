#include "controlplane/scheduler/evictions.h"

#include <algorithm>

#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/pod_util.h"

namespace keelson::scheduler {

// The evictions for one pod; whichever ends last finishes it.
struct Evictions::Job {
  PodPtr pod;
  std::string node;
  std::vector<PodPtr> victims;
  std::atomic<size_t> left{0};
  std::atomic<bool> failed{false};
};

Evictions::Evictions(client::RestClient api, client::InformerFactory& informers, Binders& binders,
                     Reports& reports, Cache& cache, SchedulingQueue& queue, Clock& clock)
    : api_(std::move(api)),
      informer_(informers.Get<policyv1::PodDisruptionBudget>()),
      binders_(binders),
      reports_(reports),
      cache_(cache),
      queue_(queue),
      clock_(clock) {
  informer_.AddHandler([this](const client::Change<policyv1::PodDisruptionBudget>&) { stale_ = true; });
}

std::shared_ptr<const std::vector<Budget>> Evictions::Budgets() {
  if (!stale_.exchange(false)) return budgets_;
  std::vector<Budget> out;
  for (const auto& budget : informer_.List()) {
    if (!budget->spec().has_selector()) continue;
    auto selector = api::LabelSelector::From(budget->spec().selector());
    if (!selector || selector->IsEverything()) continue;
    Budget& one = out.emplace_back(Budget{
        budget->metadata().namespace_(), *std::move(selector), budget->status().disruptions_allowed(), {}});
    for (const auto& [name, since] : budget->status().disrupted_pods()) one.disrupted.push_back(name);
    std::sort(one.disrupted.begin(), one.disrupted.end());
  }
  budgets_ = std::make_shared<const std::vector<Budget>>(std::move(out));
  return budgets_;
}

bool Evictions::Busy(const PodInfo& pod) const {
  MutexLock lock(mutex_);
  return busy_.contains(pod.uid);
}

void Evictions::Evict(const PodPtr& pod, const std::string& node, std::vector<PodPtr> victims,
                      std::vector<PodPtr> outranked) {
  for (const PodPtr& other : outranked) {
    cache_.Nominate(other, "");
    reports_.EndNomination(other);
    queue_.Activate(other->key);
  }
  std::erase_if(victims, [](const PodPtr& victim) { return victim->terminating; });
  if (victims.empty()) return;
  auto job = std::make_shared<Job>();
  job->pod = pod;
  job->node = node;
  job->left = victims.size();
  job->victims = std::move(victims);
  {
    MutexLock lock(mutex_);
    busy_.insert(pod->uid);
  }
  for (const PodPtr& victim : job->victims) {
    binders_.Submit(victim->uid, [this, job, victim] {
      if (Result<> evicted = EvictOne(*victim, *job->pod); evicted) {
        reports_.Preempted(*victim, *job->pod, job->node);
      } else if (!evicted.error().Is(Code::kNotFound)) {
        if (!evicted.error().Is(Code::kCancelled)) {
          log::Warn("Cannot evict a pod",
                    {{"pod", victim->key}, {"for", job->pod->key}, {"error", evicted.error()}});
        }
        job->failed = true;
      }
      if (job->left.fetch_sub(1) == 1) Finish(*job);
    });
  }
}

Result<> Evictions::EvictOne(const PodInfo& victim, const PodInfo& pod) {
  corev1::PodCondition condition;
  condition.set_type(std::string(k8s::kDisruptionTarget));
  condition.set_status("True");
  condition.set_reason("PreemptionByScheduler");
  condition.set_message(pod.scheduler_name + ": preempting to accommodate a higher priority pod");
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

void Evictions::Finish(const Job& job) {
  {
    MutexLock lock(mutex_);
    busy_.erase(job.pod->uid);
  }
  if (job.failed) {
    queue_.Activate(job.pod->key);
    return;
  }
  // Those that have gone meanwhile could not wake it.
  for (const PodPtr& victim : job.victims) {
    queue_.Notify({ClusterEvent::Kind::kPodRemoved, nullptr, nullptr, victim, nullptr});
  }
}

}  // namespace keelson::scheduler
