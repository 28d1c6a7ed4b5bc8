#include "controlplane/scheduler/scheduler.h"

#include <unordered_map>

#include <fmt/format.h>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/algorithm/debug_endpoint.h"
#include "controlplane/scheduler/api_executor.h"
#include "controlplane/scheduler/dispatcher/api_dispatcher.h"
#include "controlplane/scheduler/dispatcher/pod_status_updater.h"
#include "controlplane/scheduler/extender/extender.h"
#include "controlplane/scheduler/framework/metrics.h"
#include "controlplane/scheduler/framework/waiting_pods.h"
#include "controlplane/scheduler/plugins/default_selector.h"
#include "controlplane/scheduler/queue/event_handlers.h"
#include "controlplane/scheduler/volumes/volumes.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/client/events.h"
#include "lib/client/informer.h"
#include "lib/http/server/server_service.h"

namespace keelson::scheduler {

namespace {

// Pods that have ended neither need a node nor use one.
constexpr char kNotTerminal[] = "status.phase!=Succeeded,status.phase!=Failed";

// One attempt to schedule a pod.
struct Attempt {
  AttemptCounts before;  // all attempts, with this one; zeros while the queue has the pod
  PointTime start = std::chrono::steady_clock::now();
};

class Scheduler {
 public:
  Scheduler(client::RestClient api, const Options& options)
      : options_(options),
        clock_(*options.clock),
        api_(std::move(api)),
        events_(api_, options.config.profiles.front().scheduler_name, "", clock_),
        queue_(clock_,
               {options.config.initial_backoff, options.config.max_backoff,
                options.pod_max_in_unschedulable_pods_duration},
               QueueHooks()),
        informers_(api_, clock_),
        nodes_(informers_.Get<corev1::Node>()),
        pods_(informers_.Get<corev1::Pod>({.field_selector = kNotTerminal})),
        default_selectors_(informers_),
        pod_status_(api_, events_, dispatcher_, clock_),
        preemption_(api_, informers_, dispatcher_, pod_status_, cache_, queue_, clock_),
        event_handlers_([this](const std::string& name) { return profiles_.contains(name); },
                        [this](const PodInfo& pod) { preemption_.OnPodLeaving(pod); }, cache_, queue_,
                        words_),
        snapshot_(words_) {
    nodes_.AddHandler(
        [this](const client::Change<corev1::Node>& c) { event_handlers_.OnNode(c.key, c.new_object.get()); });
    pods_.AddHandler(
        [this](const client::Change<corev1::Pod>& c) { event_handlers_.OnPod(c.key, c.new_object.get()); });
    informers_.Get<corev1::Namespace>().AddHandler([this](const client::Change<corev1::Namespace>& c) {
      event_handlers_.OnNamespace(c.key, c.new_object.get());
    });
    FollowVolumes();
  }

  void FollowVolumes() {
    volumes_.OnChange([this] { waiting_pods_.Wake(); });
    const auto follow = [&](auto& informer, auto set) {
      informer.AddHandler([this, set](const auto& change) {
        set(change.key, change.new_object);
        event_handlers_.OnStorage();
      });
    };
    follow(informers_.Get<corev1::PersistentVolumeClaim>(),
           [this](auto& k, auto& o) { volumes_.SetClaim(k, o); });
    follow(informers_.Get<corev1::PersistentVolume>(),
           [this](auto& k, auto& o) { volumes_.SetVolume(k, o); });
    follow(informers_.Get<storagev1::StorageClass>(), [this](auto& k, auto& o) { volumes_.SetClass(k, o); });
    follow(informers_.Get<storagev1::CSINode>(), [this](auto& k, auto& o) { volumes_.SetNodeDrivers(k, o); });
    follow(informers_.Get<storagev1::CSIDriver>(), [this](auto& k, auto& o) { volumes_.SetDriver(k, o); });
    follow(informers_.Get<storagev1::CSIStorageCapacity>(),
           [this](auto& k, auto& o) { volumes_.SetCapacity(k, o); });
    // Only the end of one makes room.
    informers_.Get<storagev1::VolumeAttachment>().AddHandler(
        [this](const client::Change<storagev1::VolumeAttachment>& change) {
          volumes_.SetAttachment(change.key, change.new_object);
          if (!change.new_object) event_handlers_.OnStorage();
        });
  }

  // Makes the frameworks of all profiles. Before Run.
  Result<> MakeProfiles(std::stop_token stop) {
    if (!options_.config.extenders.empty()) {
      ExtenderObjects objects;
      objects.pod = [this](const PodInfo& pod) { return pods_.Get(pod.ns, pod.name); };
      objects.node = [this](std::string_view name) { return nodes_.Get(name); };
      KEELSON_ASSIGN_OR_RETURN(extenders_,
                               HttpExtenders::Create(options_.config.extenders, std::move(objects), stop));
      preemption_.SetExtenders(*extenders_);
    }
    FrameworkHandle handle{reasons_, words_};
    handle.default_selectors = &default_selectors_;
    handle.volumes = &volumes_;
    handle.preemption_executor = &preemption_;
    handle.api = &api_;
    for (Profile profile : options_.config.profiles) {
      for (const ExtenderConfig& extender : options_.config.extenders) {
        profile.fit.ignored_resources.insert(profile.fit.ignored_resources.end(),
                                             extender.ignored_by_scheduler.begin(),
                                             extender.ignored_by_scheduler.end());
      }
      ProfileRuntime runtime;
      KEELSON_ASSIGN_OR_RETURN(runtime.framework, MakeFramework(profile, handle));
      for (const std::shared_ptr<Plugin>& plugin : options_.plugins) runtime.framework->Add(plugin);
      runtime.framework->OnPermitChange([this] { waiting_pods_.Wake(); });
      if (extenders_) runtime.framework->AddFirstBinder(NewExtenderBinder(*extenders_));
      AlgorithmOptions options;
      options.percentage_of_nodes_to_score =
          profile.percentage_of_nodes_to_score.value_or(options_.config.percentage_of_nodes_to_score);
      options.seed = options_.seed;
      options.extenders = extenders_.get();
      runtime.algorithm = std::make_unique<Algorithm>(*runtime.framework, reasons_, options);
      profiles_[profile.scheduler_name] = std::move(runtime);
    }
    return {};
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
    for (int i = 0; i < options_.dispatcher_threads; ++i) {
      background(fmt::format("binder-{}", i), [this](std::stop_token s) { dispatcher_.Run(s); });
    }
    background("waiting", [this](std::stop_token s) { waiting_pods_.Run(s); });
    http::AddServer(group, "debug", options_.debug_host, options_.debug_port,
                    DebugHandler([this](const std::string& pod) { return DiagnosePod(pod); }));
    group.Add({"informers", {}, [this](std::stop_token s, ServiceGroup::Ready up) {
                 return informers_.Run(s, up);
               }});
    group.Add({"decisions", {"informers"}, [&](std::stop_token s, ServiceGroup::Ready up) -> Result<> {
                 up();
                 if (ready) ready();
                 if (options_.pod_resources) options_.pod_resources->Set([this] { return pods_.List(); });
                 ScheduleUntil(s);
                 if (options_.pod_resources) options_.pod_resources->Set(nullptr);
                 return {};
               }});
    return group.Run(stop);
  }

 private:
  struct ProfileRuntime {
    std::unique_ptr<Framework> framework;
    std::unique_ptr<Algorithm> algorithm;
  };

  // What follows a pod's scheduling cycle. One thread at a time has it.
  struct BindingCycle {
    PodPtr pod;
    std::shared_ptr<CycleState> state;
    std::string node;
    Attempt attempt;
    size_t next_permit = 0, next_pre_bind = 0;
    PluginStatus permit;               // the last answer of the Permit plugins
    std::optional<Result<>> pre_bind;  // the outcome of the PreBind before next_pre_bind
  };
  using BindingCyclePtr = std::shared_ptr<BindingCycle>;

  const Framework& FrameworkOf(const PodInfo& pod) const {
    return *profiles_.at(pod.scheduler_name).framework;
  }

  SchedulingQueue::Hooks QueueHooks() {
    SchedulingQueue::Hooks hooks;
    hooks.queueing_hint = [this](const auto& unschedulable_plugins, const ClusterEvent& event,
                                 const PodInfo& pod) {
      return FrameworkOf(pod).QueueingHint(unschedulable_plugins, event, pod);
    };
    hooks.events_to_register = [this](const auto& unschedulable_plugins, const PodInfo& pod) {
      return FrameworkOf(pod).EventsToRegister(unschedulable_plugins);
    };
    hooks.pre_enqueue = [this](const PodInfo& pod) { return FrameworkOf(pod).RunPreEnqueuePlugins(pod); };
    return hooks;
  }

  void ScheduleUntil(std::stop_token stop) {
    while (std::optional<PodPtr> pod = queue_.Pop(stop)) {
      ScheduleOne(*pod);
    }
  }

  void CountCache() {
    cached_nodes_.Set(static_cast<double>(snapshot_.count()));
    cached_pods_.Set(static_cast<double>(cache_.pod_count()));
    assumed_pods_.Set(static_cast<double>(cache_.assumed_count()));
  }

  static void Count(const PodInfo& pod, const char* result, PointTime start) {
    TheMetrics().attempts.With({result, pod.scheduler_name}).Increment();
    TheMetrics().attempt_duration.HistogramWith({result, pod.scheduler_name}).Observe(SecondsSince(start));
  }

  void CountScheduled(const PodInfo& pod, const Attempt& attempt) {
    Count(pod, "scheduled", attempt.start);
    const AttemptCounts& all = attempt.before;
    if (all.attempts == 0) return;  // it was deleted from the queue meanwhile
    TheMetrics().pod_attempts.HistogramWith().Observe(all.attempts);
    // From here on attempts share one label.
    constexpr int kMany = 15;
    const std::string label =
        all.attempts >= kMany ? fmt::format("{}+", kMany) : std::to_string(all.attempts);
    TheMetrics().pod_duration.HistogramWith({label}).Observe(
        std::chrono::duration<double>(clock_.SteadyNow() - all.initial_attempt_timestamp).count());
    if (all.was_flushed_from_unschedulable) TheMetrics().after_flush.With().Increment();
  }

  // What the debug endpoint answers for "namespace/name". Thread safe.
  Result<boost::json::value> DiagnosePod(const std::string& key) {
    const std::shared_ptr<const corev1::Pod> object = pods_.Get(key);
    if (!object) return Error(Code::kNotFound, fmt::format("pods \"{}\" not found", key));
    const auto pod = std::make_shared<const PodInfo>(*object, words_);
    boost::json::object out{{"pod", key}, {"scheduler", pod->scheduler_name}};
    if (!pod->node_name.empty()) {
      out["node"] = pod->node_name;
      return out;
    }
    const auto profile = profiles_.find(pod->scheduler_name);
    if (profile == profiles_.end()) {
      out["refused"] = {{"plugin", ""}, {"message", "no profile of this scheduler has that name"}};
      return out;
    }
    const SchedulingQueue::Location location = queue_.Locate(key);
    out["queue"] = location.queue;
    out["rejectedBy"] =
        boost::json::array(location.unschedulable_plugins.begin(), location.unschedulable_plugins.end());
    if (pod->gated()) {
      out["refused"] = {
          {"plugin", "SchedulingGates"},
          {"message", fmt::format("waiting for scheduling gates: {}", fmt::join(pod->gates, ", "))}};
      return out;
    }
    MutexLock lock(cycle_mutex_);
    cache_.UpdateSnapshot(snapshot_);
    CycleState state;
    boost::json::value diagnosis = ToJson(profile->second.algorithm->Diagnose(state, pod, snapshot_));
    for (auto& [field, value] : diagnosis.as_object()) out[field] = std::move(value);
    return out;
  }

  void ScheduleOne(const PodPtr& pod) {
    MutexLock lock(cycle_mutex_);
    // It has a node already: the queue has got an older state of it.
    if (cache_.Holds(*pod)) return (void)queue_.Done(pod->key);
    Attempt attempt;
    cache_.UpdateSnapshot(snapshot_);
    CountCache();
    const ProfileRuntime& profile = profiles_.at(pod->scheduler_name);
    auto state = std::make_shared<CycleState>();
    const std::string nominated = snapshot_.nominated_nodes() > 0 ? cache_.NominatedNode(pod->key) : "";
    ScheduleResult result = profile.algorithm->SchedulePod(*state, pod, snapshot_, nominated);
    const double seconds = SecondsSince(attempt.start);
    algorithm_duration_.Observe(seconds);
    decision_duration_.Observe(seconds);
    if (!result.error.empty()) {
      return HandleSchedulingFailure(pod, attempt, Error(Code::kInternal, result.error));
    }
    if (result.suggested_host.empty()) return HandleFitError(pod, attempt, result);
    std::string node(result.suggested_host);
    // A pod of this key has a node already: the informers were faster than the queue.
    if (!cache_.AssumePod(pod, node)) return (void)queue_.Done(pod->key);
    PluginStatus status = profile.framework->RunReservePluginsReserve(*state, *pod, *snapshot_.Find(node));
    if (status.status.ok()) status = profile.framework->RunPermitPlugins(*state, *pod, node);
    const bool waits = status.status.code == Status::Code::kWait;
    if (!status.status.ok() && !waits) return HandleRejection(pod, attempt, *state, node, status);
    attempt.before = queue_.Done(pod->key);
    auto cycle = std::make_shared<BindingCycle>();
    cycle->attempt = attempt;
    cycle->pod = pod;
    cycle->state = std::move(state);
    cycle->node = std::move(node);
    if (waits) return WaitOnPermit(cycle);
    dispatcher_.Submit(pod->uid, [this, cycle] { RunBindingCycle(cycle); });
  }

  void WaitOnPermit(const BindingCyclePtr& cycle) {
    const PointTime start = std::chrono::steady_clock::now();
    waiting_pods_.Add(
        {.done =
             [this, cycle] {
               cycle->permit = FrameworkOf(*cycle->pod)
                                   .PollPermit(*cycle->state, *cycle->pod, cycle->node, cycle->next_permit);
               return cycle->permit.status.code != Status::Code::kWait;
             },
         .deadline = SteadyTime::max(),
         .finish =
             [this, cycle, start](bool) {
               const char* result = cycle->permit.status.ok()         ? "Success"
                                    : cycle->permit.status.rejected() ? "Unschedulable"
                                                                      : "Error";
               TheMetrics().permit_wait.HistogramWith({result}).Observe(SecondsSince(start));
               dispatcher_.Submit(cycle->pod->uid, [this, cycle] {
                 const Status& status = cycle->permit.status;
                 if (status.ok()) return RunBindingCycle(cycle);
                 HandleBindingCycleError(*cycle, Error(Code::kInternal, status.message),
                                         status.rejected() ? "Unschedulable" : "SchedulerError");
               });
             }});
  }

  void HandleFitError(const PodPtr& pod, const Attempt& attempt, ScheduleResult& result) {
    Count(*pod, "unschedulable", attempt.start);
    const std::string message = result.fit_error.Message(reasons_);
    if (result.nominated_node_name) cache_.Nominate(pod, *result.nominated_node_name);
    queue_.AddUnschedulablePodIfNotPresent(pod, std::move(result.fit_error.unschedulable_plugins));
    pod_status_.Unschedulable(pod, "Unschedulable", message, result.nominated_node_name);
  }

  // A Reserve or Permit plugin rejects the pod, or fails. The pod is still in flight in the queue.
  void HandleRejection(const PodPtr& pod, const Attempt& attempt, CycleState& state, const std::string& node,
                       const PluginStatus& status) {
    FrameworkOf(*pod).RunReservePluginsUnreserve(state, *pod, node);
    cache_.ForgetPod(pod->key);
    if (!status.status.rejected()) {
      return HandleSchedulingFailure(
          pod, attempt, Error(Code::kInternal, fmt::format("{}: {}", status.plugin, status.status.message)));
    }
    Count(*pod, "unschedulable", attempt.start);
    queue_.AddUnschedulablePodIfNotPresent(pod, {status.plugin});
    pod_status_.Unschedulable(pod, "Unschedulable", status.status.message, std::nullopt);
  }

  // PreBind and Bind.
  void RunBindingCycle(const BindingCyclePtr& cycle) {
    const Framework& framework = FrameworkOf(*cycle->pod);
    Result<PreBindPlugin*> unfinished =
        framework.RunPreBindPlugins(*cycle->state, *cycle->pod, cycle->node, cycle->next_pre_bind);
    if (!unfinished) return HandleBindingCycleError(*cycle, unfinished.error());
    if (*unfinished) return WaitOnPreBind(cycle, **unfinished);
    if (Result<> bound = framework.RunBindPlugins(*cycle->state, *cycle->pod, cycle->node); !bound) {
      return HandleBindingCycleError(*cycle, bound.error());
    }
    CountScheduled(*cycle->pod, cycle->attempt);
    pod_status_.Scheduled(*cycle->pod, cycle->node);
  }

  void WaitOnPreBind(const BindingCyclePtr& cycle, PreBindPlugin& plugin) {
    waiting_pods_.Add({.done =
                           [cycle, &plugin] {
                             cycle->pre_bind = plugin.PreBindDone(*cycle->state, *cycle->pod);
                             return cycle->pre_bind.has_value();
                           },
                       .deadline = clock_.SteadyNow() + plugin.PreBindTimeout(),
                       .finish =
                           [this, cycle, &plugin](bool in_time) {
                             if (!in_time) cycle->pre_bind = plugin.PreBindTimeoutError();
                             dispatcher_.Submit(cycle->pod->uid, [this, cycle, &plugin] {
                               if (*cycle->pre_bind) return RunBindingCycle(cycle);
                               HandleBindingCycleError(*cycle, cycle->pre_bind->error().Wrap(plugin.name()));
                             });
                           }});
  }

  void HandleBindingCycleError(const BindingCycle& cycle, const Error& error,
                               const char* reason = "SchedulerError") {
    const PodPtr& pod = cycle.pod;
    FrameworkOf(*pod).RunReservePluginsUnreserve(*cycle.state, *pod, cycle.node);
    cache_.ForgetPod(pod->key);
    // Other pods may have been rejected because of the assumed pod.
    queue_.MoveAllToActiveOrBackoffQueue(
        {ClusterEvent::Kind::kAssignedPodDelete, nullptr, nullptr, pod, nullptr});
    HandleSchedulingFailure(pod, cycle.attempt, error, reason);
  }

  // An error of the attempt, not a pod that fits nowhere: retries after back-off.
  void HandleSchedulingFailure(const PodPtr& pod, const Attempt& attempt, const Error& error,
                               const char* reason = "SchedulerError") {
    if (error.Is(Code::kCancelled)) return;
    Count(*pod, "error", attempt.start);
    // The pod is gone, replaced by another of its name, or bound by somebody else: the informers will tell.
    if (error.Is(Code::kNotFound) || error.Is(Code::kConflict)) {
      log::Info("Binding refused", {{"pod", pod->key}, {"err", error}});
    } else {
      log::Warn("Scheduling failed", {{"pod", pod->key}, {"err", error}});
      pod_status_.Unschedulable(pod, reason, error.message(), std::nullopt);
    }
    if (!error.Is(Code::kNotFound)) queue_.RetryAfterError(pod, attempt.before);
  }

  const Options options_;
  Clock& clock_;
  const client::RestClient api_;
  client::EventRecorder events_;
  metrics::Histogram& decision_duration_ = TheMetrics().decision_duration.HistogramWith();
  metrics::Histogram& algorithm_duration_ = TheMetrics().algorithm_duration.HistogramWith();
  metrics::Value &cached_nodes_ = TheMetrics().cache_size.With({"nodes"}),
                 &cached_pods_ = TheMetrics().cache_size.With({"pods"}),
                 &assumed_pods_ = TheMetrics().cache_size.With({"assumed_pods"});
  Vocabulary words_;
  Reasons reasons_;
  Cache cache_;
  std::unordered_map<std::string, ProfileRuntime> profiles_;  // by scheduler name
  SchedulingQueue queue_;
  ApiDispatcher dispatcher_;
  WaitingPods waiting_pods_{clock_};
  client::InformerFactory informers_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<corev1::Pod>& pods_;
  InformerDefaultSelectors default_selectors_;
  VolumeCatalog volumes_;
  PodStatusUpdater pod_status_;
  ApiPreemptionExecutor preemption_;
  EventHandlers event_handlers_;
  std::unique_ptr<HttpExtenders> extenders_;
  // Held by a scheduling cycle or a diagnosis: guards the snapshot, the algorithms and the plugins' state.
  Mutex cycle_mutex_;
  Snapshot snapshot_;
};

}  // namespace

Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready) {
  Scheduler scheduler(api.With(stop), options);
  KEELSON_RETURN_IF_ERROR(scheduler.MakeProfiles(stop));
  return scheduler.Run(stop, ready);
}

}  // namespace keelson::scheduler
