#include "controlplane/scheduler/evictions.h"

#include <algorithm>

#include "controlplane/scheduler/extender/extender.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

// The evictions for one pod. It may be tried again after the last step of the last victim: earlier, a victim
// that still looks as if it stayed could make it evict others somewhere else.
struct Evictions::Job {
  PodPtr pod;
  std::string node;
  std::atomic<size_t> steps_left{0};
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
    if (!budget->spec().has_selector()) continue;  // of nothing; an empty one is of all pods
    auto selector = api::LabelSelector::From(budget->spec().selector());
    if (!selector) continue;
    Budget& one = out.emplace_back(Budget{
        budget->metadata().namespace_(), *std::move(selector), budget->status().disruptions_allowed(), {}});
    for (const auto& [name, since] : budget->status().disrupted_pods()) one.disrupted.push_back(name);
    std::sort(one.disrupted.begin(), one.disrupted.end());
  }
  budgets_ = std::make_shared<const std::vector<Budget>>(std::move(out));
  return budgets_;
}

bool Evictions::Consults(const PodInfo& pod) const { return extenders_ && extenders_->Preempts(pod); }

Result<> Evictions::Consult(const PodInfo& pod, const Snapshot& snapshot, VictimsBySlot& victims) {
  return extenders_->Preempt(pod, snapshot, victims);
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
  job->steps_left = 2 * victims.size();
  {
    MutexLock lock(mutex_);
    busy_.insert(pod->uid);
    for (const PodPtr& victim : victims) leaving_.emplace(victim->uid, job);
  }
  for (const PodPtr& victim : victims) {
    if (!cache_.Holds(*victim)) Leaves(*victim);  // gone before it was in leaving_
    binders_.Submit(victim->uid, [this, job, victim] {
      if (Result<> evicted = EvictOne(*victim, *job->pod); evicted) {
        reports_.Preempted(*victim, *job->pod, job->node);
      } else if (!evicted.error().Is(Code::kNotFound)) {
        if (!evicted.error().Is(Code::kCancelled)) {
          log::Warn("Cannot evict a pod",
                    {{"pod", victim->key}, {"for", job->pod->key}, {"error", evicted.error()}});
        }
        Leaves(*victim);  // it does not
      }
      Step(*job);
    });
  }
}

void Evictions::Leaves(const PodInfo& pod) {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    MutexLock lock(mutex_);
    const auto [first, last] = leaving_.equal_range(pod.uid);
    for (auto it = first; it != last; ++it) jobs.push_back(std::move(it->second));
    leaving_.erase(first, last);
  }
  for (const auto& job : jobs) Step(*job);
}

void Evictions::Step(Job& job) {
  if (job.steps_left.fetch_sub(1) > 1) return;
  {
    MutexLock lock(mutex_);
    busy_.erase(job.pod->uid);
  }
  queue_.Activate(job.pod->key);
}

Result<> Evictions::EvictOne(const PodInfo& victim, const PodInfo& pod) {
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
