#include "controlplane/scheduler/scheduler.h"

#include <fmt/format.h>

#include "controlplane/scheduler/algorithm.h"
#include "controlplane/scheduler/binders.h"
#include "controlplane/scheduler/intake.h"
#include "controlplane/scheduler/plugins/plugins.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/service_group.h"
#include "lib/client/events.h"
#include "lib/client/informer.h"
#include "lib/k8s/pod_util.h"

namespace keelson::scheduler {

namespace {

// What has ended neither needs a node nor uses one.
constexpr char kNotTerminal[] = "status.phase!=Succeeded,status.phase!=Failed";

corev1::ObjectReference ReferenceTo(const PodInfo& pod) {
  corev1::ObjectReference reference;
  reference.set_api_version("v1");
  reference.set_kind("Pod");
  reference.set_namespace_(pod.ns);
  reference.set_name(pod.name);
  reference.set_uid(pod.uid);
  return reference;
}

struct Metrics {
  metrics::Family& attempts = metrics::Counter(
      "scheduler_schedule_attempts_total", "Attempts to schedule pods, by result.", {"result", "profile"});
  metrics::Histogram& algorithm =
      metrics::Histograms("scheduler_scheduling_algorithm_duration_seconds", "Time to choose a node.",
                          metrics::ExponentialBuckets(0.00001, 2, 18))
          .HistogramWith();
  metrics::Family& pending = metrics::Gauge("scheduler_pending_pods", "Pods that wait, by queue.", {"queue"});
};

class Scheduler {
 public:
  Scheduler(client::RestClient api, const Options& options)
      : options_(options),
        clock_(*options.clock),
        api_(std::move(api)),
        events_(api_, options.scheduler_name, "", clock_),
        queue_(clock_, {options.initial_backoff, options.max_backoff, options.max_unschedulable},
               [this](const auto& rejected_by, const auto& event, const auto& pod) {
                 return framework_.MayHelp(rejected_by, event, pod);
               }),
        framework_(MakeFramework()),
        algorithm_(framework_, options.percentage_of_nodes_to_score, options.seed),
        intake_(options.scheduler_name, cache_, queue_, names_),
        informers_(api_, clock_) {
    informers_.Get<corev1::Node>().AddHandler(
        [this](const client::Change<corev1::Node>& c) { intake_.OnNode(c.key, c.new_object.get()); });
    informers_.Get<corev1::Pod>({.field_selector = kNotTerminal})
        .AddHandler(
            [this](const client::Change<corev1::Pod>& c) { intake_.OnPod(c.key, c.new_object.get()); });
  }

  Result<> Run(std::stop_token stop, const std::function<void()>& ready) {
    ServiceGroup group;
    const auto background = [&](std::string name, std::function<void(std::stop_token)> run) {
      group.Add({std::move(name),
                 {},
                 [run = std::move(run)](std::stop_token s, ServiceGroup::Ready up) -> Result<> {
                   up();
                   run(s);
                   return {};
                 }});
    };
    background("events", [this](std::stop_token s) { events_.Run(s); });
    background("queue", [this](std::stop_token s) { queue_.Run(s); });
    for (int i = 0; i < options_.binders; ++i) {
      background(fmt::format("binder-{}", i), [this](std::stop_token s) { binders_.Run(s); });
    }
    group.Add({"informers", {}, [this](std::stop_token s, ServiceGroup::Ready up) {
                 return informers_.Run(s, up);
               }});
    group.Add({"decisions", {"informers"}, [&](std::stop_token s, ServiceGroup::Ready up) -> Result<> {
                 up();
                 if (ready) ready();
                 Decide(s);
                 return {};
               }});
    return group.Run(stop);
  }

 private:
  Framework MakeFramework() {
    Framework framework;
    AddNodePlugins(framework, reasons_, names_);
    framework.Add(NewDefaultBinder(api_));
    return framework;
  }

  void Decide(std::stop_token stop) {
    while (std::optional<PodPtr> pod = queue_.Pop(stop)) {
      ScheduleOne(*pod);
      CountPending();
    }
  }

  void CountPending() {
    const SchedulingQueue::Sizes sizes = queue_.sizes();
    metrics_.pending.With({"active"}).Set(static_cast<double>(sizes.active));
    metrics_.pending.With({"backoff"}).Set(static_cast<double>(sizes.backoff));
    metrics_.pending.With({"unschedulable"}).Set(static_cast<double>(sizes.unschedulable));
    metrics_.pending.With({"gated"}).Set(static_cast<double>(sizes.gated));
  }

  void Count(const char* result) { metrics_.attempts.With({result, options_.scheduler_name}).Increment(); }

  void ScheduleOne(const PodPtr& pod) {
    cache_.Update(snapshot_);
    auto state = std::make_shared<CycleState>();
    const SteadyTime start = clock_.SteadyNow();
    Decision decision = algorithm_.Schedule(*state, *pod, snapshot_);
    metrics_.algorithm.Observe(std::chrono::duration<double>(clock_.SteadyNow() - start).count());
    if (decision.node.empty()) {
      Count("unschedulable");
      const std::string message = decision.diagnosis.Message(reasons_);
      queue_.Unschedulable(pod, std::move(decision.diagnosis.rejected_by));
      Report(pod, "Unschedulable", message);
      return;
    }
    std::string node(decision.node);
    // A pod of this key has a node already: the informers have been quicker than the queue.
    if (!cache_.Assume(pod, node)) return queue_.Done(pod->key);
    queue_.Done(pod->key);
    Result<> reserved = framework_.Reserve(*state, *pod, node);
    if (reserved) reserved = framework_.Permit(*state, *pod, node);
    if (!reserved) return Failed(pod, *state, node, reserved.error());
    binders_.Submit([this, pod, state, node = std::move(node)] { Bind(pod, *state, node); });
  }

  void Bind(const PodPtr& pod, CycleState& state, const std::string& node) {
    if (Result<> bound = framework_.Bind(state, *pod, node); !bound) {
      return Failed(pod, state, node, bound.error());
    }
    Count("scheduled");
    events_.Record(ReferenceTo(*pod), "Normal", "Scheduled",
                   fmt::format("Successfully assigned {} to {}", pod->key, node));
  }

  void Failed(const PodPtr& pod, CycleState& state, const std::string& node, const Error& error) {
    framework_.Unreserve(state, *pod, node);
    cache_.Forget(pod->key);
    // Others may have been told that there was no room.
    queue_.Notify({ClusterEvent::Kind::kPodRemoved, nullptr, nullptr, pod});
    if (error.Is(Code::kCancelled)) return;
    Count("error");
    // Gone, another pod of that name, or bound by somebody else: what the informers bring decides.
    if (error.Is(Code::kNotFound) || error.Is(Code::kConflict)) {
      log::Info("Binding refused", {{"pod", pod->key}, {"node", node}, {"error", error}});
    } else {
      log::Warn("Binding failed", {{"pod", pod->key}, {"node", node}, {"error", error}});
      Report(pod, "SchedulerError", error.message());
    }
    if (!error.Is(Code::kNotFound)) queue_.Retry(pod);
  }

  // An event, and the PodScheduled condition when it is news.
  void Report(const PodPtr& pod, std::string_view reason, const std::string& message) {
    events_.Record(ReferenceTo(*pod), "Warning", "FailedScheduling", message);
    if (pod->condition_status == "False" && pod->condition_reason == reason &&
        pod->condition_message == message) {
      return;
    }
    corev1::PodCondition condition;
    condition.set_type(std::string(k8s::kPodScheduled));
    condition.set_status("False");
    condition.set_reason(std::string(reason));
    condition.set_message(message);
    *condition.mutable_last_transition_time() =
        pod->condition_status == "False" ? pod->condition_since : api::ToTime(clock_.Now());
    std::string body = R"({"metadata":{"uid":")" + pod->uid + R"("},"status":{"conditions":[)" +
                       api::EncodeJson(condition) + "]}}";
    binders_.Submit([this, pod, body = std::move(body)] {
      const auto patched =
          api_.Patch<corev1::Pod>(pod->ns, pod->name, client::PatchType::kStrategicMerge, body, "status");
      if (patched || patched.error().Is(Code::kCancelled) || patched.error().Is(Code::kNotFound) ||
          patched.error().Is(Code::kConflict)) {
        return;
      }
      log::Warn("Cannot write the condition of a pod", {{"pod", pod->key}, {"error", patched.error()}});
    });
  }

  const Options options_;
  Clock& clock_;
  const client::RestClient api_;
  client::EventRecorder events_;
  Metrics metrics_;
  ResourceNames names_;
  Reasons reasons_;
  Cache cache_;
  SchedulingQueue queue_;
  const Framework framework_;
  Algorithm algorithm_;
  Snapshot snapshot_;
  Intake intake_;
  Binders binders_;
  client::InformerFactory informers_;
};

}  // namespace

Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready) {
  Scheduler scheduler(api.With(stop), options);
  return scheduler.Run(stop, ready);
}

}  // namespace keelson::scheduler
