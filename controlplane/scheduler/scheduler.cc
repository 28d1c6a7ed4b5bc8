#include "controlplane/scheduler/scheduler.h"

#include <unordered_map>

#include <fmt/format.h>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "controlplane/scheduler/algorithm/why.h"
#include "controlplane/scheduler/binders.h"
#include "controlplane/scheduler/evictions.h"
#include "controlplane/scheduler/extender/extender.h"
#include "controlplane/scheduler/framework/metrics.h"
#include "controlplane/scheduler/framework/waiting_room.h"
#include "controlplane/scheduler/queue/intake.h"
#include "controlplane/scheduler/reports.h"
#include "controlplane/scheduler/volumes/volumes.h"
#include "controlplane/scheduler/workloads.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/client/events.h"
#include "lib/client/informer.h"
#include "lib/http/server/server_service.h"

namespace keelson::scheduler {

namespace {

// What has ended neither needs a node nor uses one.
constexpr char kNotTerminal[] = "status.phase!=Succeeded,status.phase!=Failed";

// One attempt to find a node for a pod.
struct Attempt {
  Attempts before;  // what the pod has been through, this one included; empty while the queue has the pod
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
               {options.config.initial_backoff, options.config.max_backoff, options.max_unschedulable},
               QueueHooks()),
        informers_(api_, clock_),
        nodes_(informers_.Get<corev1::Node>()),
        pods_(informers_.Get<corev1::Pod>({.field_selector = kNotTerminal})),
        workloads_(informers_),
        reports_(api_, events_, binders_, clock_),
        evictions_(api_, informers_, binders_, reports_, cache_, queue_, clock_),
        intake_([this](const std::string& name) { return profiles_.contains(name); },
                [this](const PodInfo& pod) { evictions_.Leaves(pod); }, cache_, queue_, words_),
        snapshot_(words_) {
    nodes_.AddHandler(
        [this](const client::Change<corev1::Node>& c) { intake_.OnNode(c.key, c.new_object.get()); });
    pods_.AddHandler(
        [this](const client::Change<corev1::Pod>& c) { intake_.OnPod(c.key, c.new_object.get()); });
    informers_.Get<corev1::Namespace>().AddHandler([this](const client::Change<corev1::Namespace>& c) {
      intake_.OnNamespace(c.key, c.new_object.get());
    });
    FollowVolumes();
  }

  void FollowVolumes() {
    volumes_.OnChange([this] { waiting_.Wake(); });
    const auto follow = [&](auto& informer, auto set) {
      informer.AddHandler([this, set](const auto& change) {
        set(change.key, change.new_object);
        intake_.OnStorage();
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
  }

  // Before Run.
  Result<> MakeProfiles(std::stop_token stop) {
    if (!options_.config.extenders.empty()) {
      ExtenderObjects objects;
      objects.pod = [this](const PodInfo& pod) { return pods_.Get(pod.ns, pod.name); };
      objects.node = [this](std::string_view name) { return nodes_.Get(name); };
      ASSIGN_OR_RETURN(extenders_,
                       HttpExtenders::Create(options_.config.extenders, std::move(objects), stop));
      evictions_.Ask(*extenders_);
    }
    PluginParts parts{reasons_, words_};
    parts.workloads = &workloads_;
    parts.volumes = &volumes_;
    parts.evictor = &evictions_;
    parts.api = &api_;
    for (Profile profile : options_.config.profiles) {
      for (const ExtenderConfig& extender : options_.config.extenders) {
        profile.fit.ignored_resources.insert(profile.fit.ignored_resources.end(),
                                             extender.ignored_by_scheduler.begin(),
                                             extender.ignored_by_scheduler.end());
      }
      Made made;
      ASSIGN_OR_RETURN(made.framework, MakeFramework(profile, parts));
      for (const std::shared_ptr<Plugin>& plugin : options_.plugins) made.framework->Add(plugin);
      made.framework->OnPermitChange([this] { waiting_.Wake(); });
      if (extenders_) made.framework->AddFirstBinder(NewExtenderBinder(*extenders_));
      AlgorithmOptions options;
      options.percentage = profile.percentage.value_or(options_.config.percentage_of_nodes_to_score);
      options.seed = options_.seed;
      options.extenders = extenders_.get();
      made.algorithm = std::make_unique<Algorithm>(*made.framework, reasons_, options);
      profiles_[profile.scheduler_name] = std::move(made);
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
    for (int i = 0; i < options_.binders; ++i) {
      background(fmt::format("binder-{}", i), [this](std::stop_token s) { binders_.Run(s); });
    }
    background("waiting", [this](std::stop_token s) { waiting_.Run(s); });
    http::AddServer(group, "debug", options_.debug_host, options_.debug_port,
                    WhyHandler([this](const std::string& pod) { return Why(pod); }));
    group.Add({"informers", {}, [this](std::stop_token s, ServiceGroup::Ready up) {
                 return informers_.Run(s, up);
               }});
    group.Add({"decisions", {"informers"}, [&](std::stop_token s, ServiceGroup::Ready up) -> Result<> {
                 up();
                 if (ready) ready();
                 if (options_.pod_resources) options_.pod_resources->Set([this] { return pods_.List(); });
                 Decide(s);
                 if (options_.pod_resources) options_.pod_resources->Set(nullptr);
                 return {};
               }});
    return group.Run(stop);
  }

 private:
  struct Made {
    std::unique_ptr<Framework> framework;
    std::unique_ptr<Algorithm> algorithm;
  };

  // A pod's way from the decision to its binding. One thread at a time has it.
  struct Way {
    PodPtr pod;
    std::shared_ptr<CycleState> state;
    std::string node;
    Attempt attempt;
    size_t next_permit = 0, next_pre_bind = 0;
    Judgement said;                    // by the Permit plugins
    std::optional<Result<>> prepared;  // what the PreBind before next_pre_bind has asked for
  };
  using WayPtr = std::shared_ptr<Way>;

  const Framework& FrameworkOf(const PodInfo& pod) const {
    return *profiles_.at(pod.scheduler_name).framework;
  }

  SchedulingQueue::Hooks QueueHooks() {
    SchedulingQueue::Hooks hooks;
    hooks.may_help = [this](const auto& rejected_by, const ClusterEvent& event, const PodInfo& pod) {
      return FrameworkOf(pod).MayHelp(rejected_by, event, pod);
    };
    hooks.interests = [this](const auto& rejected_by, const PodInfo& pod) {
      return FrameworkOf(pod).Interests(rejected_by);
    };
    hooks.admits = [this](const PodInfo& pod) { return FrameworkOf(pod).Admits(pod); };
    return hooks;
  }

  void Decide(std::stop_token stop) {
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
    const Attempts& all = attempt.before;
    if (all.all == 0) return;  // it has left the queue meanwhile
    TheMetrics().pod_attempts.HistogramWith().Observe(all.all);
    // From so many on, the number of attempts is not told apart.
    constexpr int kMany = 15;
    const std::string label = all.all >= kMany ? fmt::format("{}+", kMany) : std::to_string(all.all);
    TheMetrics().pod_duration.HistogramWith({label}).Observe(
        std::chrono::duration<double>(clock_.SteadyNow() - all.first).count());
    if (all.flushed) TheMetrics().after_flush.With().Increment();
  }

  // Of any thread.
  Result<boost::json::value> Why(const std::string& key) {
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
    const SchedulingQueue::Standing standing = queue_.StandingOf(key);
    out["queue"] = standing.place;
    out["rejectedBy"] = boost::json::array(standing.rejected_by.begin(), standing.rejected_by.end());
    if (pod->gated()) {
      out["refused"] = {
          {"plugin", "SchedulingGates"},
          {"message", fmt::format("waiting for scheduling gates: {}", fmt::join(pod->gates, ", "))}};
      return out;
    }
    MutexLock lock(deciding_);
    cache_.Update(snapshot_);
    CycleState state;
    boost::json::value account = ToJson(profile->second.algorithm->Explain(state, pod, snapshot_));
    for (auto& [field, value] : account.as_object()) out[field] = std::move(value);
    return out;
  }

  void ScheduleOne(const PodPtr& pod) {
    MutexLock lock(deciding_);
    // It has a node: what the informers told of it before has come after that.
    if (cache_.Holds(*pod)) return (void)queue_.Done(pod->key);
    Attempt attempt;
    cache_.Update(snapshot_);
    CountCache();
    const Made& profile = profiles_.at(pod->scheduler_name);
    auto state = std::make_shared<CycleState>();
    const std::string nominated = snapshot_.nominated_nodes() > 0 ? cache_.NominatedNode(pod->key) : "";
    Decision decision = profile.algorithm->Schedule(*state, pod, snapshot_, nominated);
    const double seconds = SecondsSince(attempt.start);
    algorithm_duration_.Observe(seconds);
    decision_duration_.Observe(seconds);
    if (!decision.error.empty()) return Failed(pod, attempt, Error(Code::kInternal, decision.error));
    if (decision.node.empty()) return Unschedulable(pod, attempt, decision);
    std::string node(decision.node);
    // A pod of this key has a node already: the informers have been quicker than the queue.
    if (!cache_.Assume(pod, node)) return (void)queue_.Done(pod->key);
    Judgement judged = profile.framework->Reserve(*state, *pod, *snapshot_.Find(node));
    if (judged.status.ok()) judged = profile.framework->Permit(*state, *pod, node);
    const bool waits = judged.status.code == Status::Code::kWait;
    if (!judged.status.ok() && !waits) return Refused(pod, attempt, *state, node, judged);
    attempt.before = queue_.Done(pod->key);
    auto way = std::make_shared<Way>();
    way->attempt = attempt;
    way->pod = pod;
    way->state = std::move(state);
    way->node = std::move(node);
    if (waits) return AwaitPermit(way);
    binders_.Submit(pod->uid, [this, way] { Prepare(way); });
  }

  void AwaitPermit(const WayPtr& way) {
    const PointTime start = std::chrono::steady_clock::now();
    waiting_.Enter({.over =
                        [this, way] {
                          way->said = FrameworkOf(*way->pod).Recall(*way->state, *way->pod, way->node,
                                                                    way->next_permit);
                          return way->said.status.code != Status::Code::kWait;
                        },
                    .deadline = SteadyTime::max(),
                    .leave =
                        [this, way, start](bool) {
                          const char* result = way->said.status.ok()         ? "Success"
                                               : way->said.status.rejected() ? "Unschedulable"
                                                                             : "Error";
                          TheMetrics().permit_wait.HistogramWith({result}).Observe(SecondsSince(start));
                          binders_.Submit(way->pod->uid, [this, way] {
                            const Status& status = way->said.status;
                            if (status.ok()) return Prepare(way);
                            Unbound(*way, Error(Code::kInternal, status.message),
                                    status.rejected() ? "Unschedulable" : "SchedulerError");
                          });
                        }});
  }

  void Unschedulable(const PodPtr& pod, const Attempt& attempt, Decision& decision) {
    Count(*pod, "unschedulable", attempt.start);
    const std::string message = decision.diagnosis.Message(reasons_);
    if (decision.nominate) cache_.Nominate(pod, *decision.nominate);
    queue_.Unschedulable(pod, std::move(decision.diagnosis.rejected_by));
    reports_.Unschedulable(pod, "Unschedulable", message, decision.nominate);
  }

  // By Reserve or Permit: the pod is still the queue's.
  void Refused(const PodPtr& pod, const Attempt& attempt, CycleState& state, const std::string& node,
               const Judgement& judged) {
    FrameworkOf(*pod).Unreserve(state, *pod, node);
    cache_.Forget(pod->key);
    if (!judged.status.rejected()) {
      return Failed(pod, attempt,
                    Error(Code::kInternal, fmt::format("{}: {}", judged.plugin, judged.status.message)));
    }
    Count(*pod, "unschedulable", attempt.start);
    queue_.Unschedulable(pod, {judged.plugin});
    reports_.Unschedulable(pod, "Unschedulable", judged.status.message, std::nullopt);
  }

  // PreBind by PreBind, and at last the binding.
  void Prepare(const WayPtr& way) {
    const Framework& framework = FrameworkOf(*way->pod);
    Result<PreBindPlugin*> waits_for =
        framework.PreBind(*way->state, *way->pod, way->node, way->next_pre_bind);
    if (!waits_for) return Unbound(*way, waits_for.error());
    if (*waits_for) return AwaitPrepared(way, **waits_for);
    if (Result<> bound = framework.Bind(*way->state, *way->pod, way->node); !bound)
      return Unbound(*way, bound.error());
    CountScheduled(*way->pod, way->attempt);
    reports_.Scheduled(*way->pod, way->node);
  }

  void AwaitPrepared(const WayPtr& way, PreBindPlugin& plugin) {
    waiting_.Enter({.over =
                        [way, &plugin] {
                          way->prepared = plugin.Prepared(*way->state, *way->pod);
                          return way->prepared.has_value();
                        },
                    .deadline = clock_.SteadyNow() + plugin.patience(),
                    .leave =
                        [this, way, &plugin](bool in_time) {
                          if (!in_time) way->prepared = plugin.Overdue();
                          binders_.Submit(way->pod->uid, [this, way, &plugin] {
                            if (*way->prepared) return Prepare(way);
                            Unbound(*way, way->prepared->error().Wrap(plugin.name()));
                          });
                        }});
  }

  void Unbound(const Way& way, const Error& error, const char* reason = "SchedulerError") {
    const PodPtr& pod = way.pod;
    FrameworkOf(*pod).Unreserve(*way.state, *pod, way.node);
    cache_.Forget(pod->key);
    // Others may have been told that there was no room.
    queue_.Notify({ClusterEvent::Kind::kPodRemoved, nullptr, nullptr, pod, nullptr});
    Failed(pod, way.attempt, error, reason);
  }

  // Not the pod's fault: another try after back-off.
  void Failed(const PodPtr& pod, const Attempt& attempt, const Error& error,
              const char* reason = "SchedulerError") {
    if (error.Is(Code::kCancelled)) return;
    Count(*pod, "error", attempt.start);
    // Gone, another pod of that name, or bound by somebody else: what the informers bring decides.
    if (error.Is(Code::kNotFound) || error.Is(Code::kConflict)) {
      log::Info("Binding refused", {{"pod", pod->key}, {"error", error}});
    } else {
      log::Warn("Scheduling failed", {{"pod", pod->key}, {"error", error}});
      reports_.Unschedulable(pod, reason, error.message(), std::nullopt);
    }
    if (!error.Is(Code::kNotFound)) queue_.Retry(pod, attempt.before);
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
  std::unordered_map<std::string, Made> profiles_;  // by scheduler name
  SchedulingQueue queue_;
  Binders binders_;
  WaitingRoom waiting_{clock_};
  client::InformerFactory informers_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<corev1::Pod>& pods_;
  InformedWorkloads workloads_;
  VolumeCatalog volumes_;
  Reports reports_;
  Evictions evictions_;
  Intake intake_;
  std::unique_ptr<HttpExtenders> extenders_;
  Mutex deciding_;  // one decision, or one account of one, at a time: snapshot, algorithms and plugins
  Snapshot snapshot_;
};

}  // namespace

Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready) {
  Scheduler scheduler(api.With(stop), options);
  RETURN_IF_ERROR(scheduler.MakeProfiles(stop));
  return scheduler.Run(stop, ready);
}

}  // namespace keelson::scheduler
