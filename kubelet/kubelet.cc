#include "kubelet/kubelet.h"

#include <algorithm>
#include <thread>

#include "kubelet/admission.h"
#include "kubelet/api_objects.h"
#include "kubelet/backend.h"
#include "kubelet/config/feature_gates.h"
#include "kubelet/event_reporter.h"
#include "kubelet/host_check.h"
#include "kubelet/housekeeping.h"
#include "kubelet/metrics/pod_starts.h"
#include "kubelet/node/node_manager.h"
#include "kubelet/node/oom_watcher.h"
#include "kubelet/node_setup.h"
#include "kubelet/part_options.h"
#include "kubelet/pod/admission.h"
#include "kubelet/pod/pleg.h"
#include "kubelet/pod/pod_workers.h"
#include "kubelet/pod/runtime_features.h"
#include "kubelet/probe/socket_prober.h"
#include "kubelet/shutdown/manager.h"
#include "kubelet/staticpod/sources.h"
#include "kubelet/staticpod/static_pods.h"
#include "kubelet/usage.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/base/file.h"
#include "lib/base/pause.h"
#include "lib/client/informer.h"
#include "lib/k8s/pod_util.h"
#include "lib/k8s/qos.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr std::chrono::minutes kContainerGc(1);
constexpr char kPreempting[] = "Preempting", kPreempted[] = "Preempted in order to admit critical pod",
               kPreemptedTarget[] = "Pod was preempted by Kubelet to accommodate a critical pod";

void AwaitStop(std::stop_token stop) {
  Mutex mutex;
  CondVar cv;
  MutexLock lock(mutex);
  cv.wait(mutex, stop, [] { return false; });
}

client::ListOptions ByField(const std::string& selector) {
  client::ListOptions options;
  options.field_selector = selector;
  return options;
}

}  // namespace

struct Kubelet::Impl {
  Impl(KubeletParts given, const Settings& given_settings, Clock& given_clock)
      : parts(std::move(given)),
        settings(given_settings),
        clock(given_clock),
        node_options(MakeNodeOptions(settings, parts.runtime_name + "://" + parts.runtime_version)),
        events(parts.api, node_options.name, parts.standalone, clock),
        informers(parts.api, clock),
        pods(informers.Get<corev1::Pod>(ByField("spec.nodeName=" + node_options.name))),
        nodes(informers.Get<corev1::Node>(ByField("metadata.name=" + node_options.name))),
        runtime_classes(informers.Get<api::node::v1::RuntimeClass>()),
        objects(parts.api, informers.Get<corev1::Service>(), clock),
        node(
            parts.api, node_options, [this](std::stop_token stop) { return Facts(stop); }, clock,
            [this](const NodeEvent& event) { events.Node(event.type, event.reason, event.message); }),
        context(MakeNodeContext(settings, node_options, node.machine(), parts.cgroup_v2)),
        features(parts.runtime),
        user_namespaces(context.paths),
        starts(clock),
        handlers(NewHandlerRunner(parts.runtime, sockets, clock)),
        images(parts.images, MakeImageOptions(settings, parts.credential_providers, starts), clock),
        volumes(parts.mounter, objects, NewVolumePlugins(parts.mounter, objects, clock),
                [this] { return nodes.Get("", node_options.name); }),
        statuses(parts.api, clock),
        probes(
            *handlers, executor, [this](const std::string& uid) { workers.Touch(uid); },
            [this](const corev1::Pod& pod, const std::string& container, const std::string& reason,
                   const std::string& message) { events.Pod(pod, container, "Warning", reason, message); },
            clock),
        pleg(
            parts.runtime, [this](const std::string& uid) { workers.Touch(uid); }, clock),
        usage(parts.runtime, parts.images, parts.cgroups, context.paths, node.machine().memory_bytes,
              MemoryOfPods(node.machine(), node_options.reservations), node.machine().max_pids),
        log_rotator(parts.runtime, context.paths, MakeLogOptions(settings.config), clock),
        image_gc(
            parts.runtime, parts.images,
            [this](std::stop_token stop) { return ImageSpace(parts.images, stop); },
            [this](const std::string& reason, const std::string& message) {
              events.Node("Warning", reason, message);
            },
            MakeImageGcOptions(settings, images), clock),
        evictions(EvictionDependencies(), MakeEvictionOptions(settings.config),
                  ParseThresholds(MakeEvictionOptions(settings.config)).value_or(std::vector<Threshold>()),
                  clock),
        admission({[this] { return nodes.Get("", node_options.name); },
                   [this](const std::string& except) { return Granted(except); },
                   [this](const corev1::Pod& pod) { Preempt(pod); }, evictions,
                   [this](const std::string& uid, k8s::ResourceList& allocatable) {
                     if (parts.resources) parts.resources->AddDevices(uid, allocatable);
                   }},
                  node_options, context.allocatable),
        allocations(context.paths),
        syncer(Dependencies(), MakeSyncOptions(settings, parts.runtime_name), clock),
        workers(syncer, statuses, executor, WorkerOptions(), clock),
        shutdown(ShutdownDependencies(), ShutdownPeriods(settings.config)),
        static_pods(StaticDependencies(), StaticSources(settings.config), clock),
        housekeeping({parts.runtime, parts.cgroups, volumes, pleg, workers, parts.resources,
                      [this] { return static_pods.ready(); }, [this] { return Granted(""); }},
                     context, clock),
        stats(
            parts.runtime, parts.images, parts.cgroups, context.paths, [this] { return workers.Pods(); },
            [this](const std::string& uid, const std::string& path) -> std::optional<VolumeName> {
              auto known = volumes.volumes().FindByPath(uid, path);
              if (!known) return std::nullopt;
              return VolumeName{known->volume, known->claim};
            },
            settings.config.volume_stats_agg_period, clock),
        backend(workers, statuses, probes, volumes, parts.runtime, stats, node_options.name, settings,
                HealthChecks()) {
    pods.AddHandler([this](const client::Change<corev1::Pod>& change) { PodChanged(change); });
    if (parts.resources) ConnectResources();
    if (!parts.standalone && FeatureEnabled(settings.config.feature_gates, "PodCertificateRequest"))
      objects.IssuePodCertificates(std::make_unique<PodCertificates>(CertificateDependencies(), clock));
  }

  std::vector<k8s::NamedCheck> HealthChecks() {
    auto fine = []() -> Result<> { return {}; };
    return {{"ping", fine},
            {"log", fine},
            {"syncloop",
             [this]() -> Result<> {
               if (auto problem = pleg.Unhealthy()) return Error(Code::kUnavailable, *problem);
               return {};
             }},
            {"device-plugin",
             [this] { return parts.resources ? parts.resources->CheckRegistration() : Result<>(); }}};
  }

  PodCertificates::Dependencies CertificateDependencies() {
    return {parts.api, node_options.name, [this] { return OwnUid().value_or(""); },
            [this](const corev1::Pod& pod, const std::string& reason, const std::string& message) {
              events.Pod(pod, "", "Warning", reason, message);
            }};
  }

  std::optional<std::string> OwnUid() const {
    auto own = nodes.Get("", node_options.name);
    return own ? std::optional(own->metadata().uid()) : std::nullopt;
  }

  // Mirrors are static pods' business. Of the others nothing is begun before the node is known to the API.
  void PodChanged(const client::Change<corev1::Pod>& change) {
    if (k8s::IsMirror(change.object())) {
      static_pods.MirrorChanged(change.new_object ? change.new_object : change.old_object,
                                change.new_object == nullptr);
      return;
    }
    if (change.new_object) starts.Observed(*change.new_object);
    MutexLock lock(mutex);
    if (!takes_api_pods) return;
    if (change.new_object) {
      // A pod that was deleted and made again between two looks comes as an update.
      if (change.old_object && change.old_object->metadata().uid() != change.new_object->metadata().uid())
        workers.Remove(change.old_object->metadata().uid());
      workers.Update(change.new_object);
    } else {
      workers.Remove(change.old_object->metadata().uid());
    }
  }

  void TakeApiPods() {
    MutexLock lock(mutex);
    takes_api_pods = true;
    for (const auto& pod : pods.List())
      if (!k8s::IsMirror(*pod)) workers.Update(pod);
  }

  PodWorkers::Options WorkerOptions() {
    PodWorkers::Options out;
    out.sync_frequency = settings.config.sync_frequency;
    out.forgotten = [this](const std::string& uid) {
      starts.Forget(uid);
      static_pods.Released(uid);
      for (const std::string& waiting : allocations.Deferred()) workers.Touch(waiting);
    };
    return out;
  }

  // What the node's resources are spoken for by: pods as they were granted, not as they wish to be.
  std::vector<Admission::PodPtr> Granted(const std::string& except_uid) const {
    std::vector<Admission::PodPtr> out = workers.Active(except_uid);
    for (auto& pod : out) pod = allocations.Granted(pod);
    return out;
  }

  NodeRoom RoomFor(const std::string& uid) const {
    NodeRoom room;
    room.allocatable = context.allocatable;
    const auto others = Granted(uid);
    for (const auto& other : others) k8s::Add(room.used_by_others, k8s::PodRequests(*other));
    room.used_by_others["pods"] = api::Amount::FromInt(static_cast<int64_t>(others.size()));
    room.static_cpus = settings.config.cpu_manager_policy == "static";
    room.static_memory = settings.config.memory_manager_policy == "Static";
    return room;
  }

  StaticPods::Dependencies StaticDependencies() {
    return {parts.api,
            [this](StaticPods::PodPtr pod) { workers.Update(std::move(pod)); },
            [this](const std::string& uid) { workers.Remove(uid); },
            [this] { return OwnUid(); },
            [this](const std::string& uid, StaticPods::PodPtr mirror) {
              statuses.SetMirror(uid, std::move(mirror));
            },
            node_options.name};
  }

  EvictionManager::Dependencies EvictionDependencies() {
    return {[this](std::stop_token stop) { return usage.Observe(stop); },
            [this] { return workers.Active(""); },
            [this](const corev1::Pod& pod) { return usage.Usage(pod); },
            [this](const corev1::Pod& pod, const std::string& message, seconds grace) {
              events.Pod(pod, "", "Warning", "Evicted", message);
              workers.Evict(pod.metadata().uid(), {"Evicted", message, message}, grace);
            },
            [this](std::stop_token stop) {
              CollectDead({milliseconds(0), 1, -1}, stop);
            },
            [this](std::stop_token stop) {
              if (auto removed = image_gc.RemoveUnused(stop); !removed)
                log::Warn("Cannot remove unused images", {{"error", removed.error()}});
            },
            [this](const std::string& reason, const std::string& message) {
              events.Node("Warning", reason, message);
            },
            [this] { return usage.layout(); },
            [this] { return parts.cgroups.WatchMemory(); }};
  }

  ShutdownManager::Dependencies ShutdownDependencies() {
    return {
        parts.logind, [this] { return workers.Active(""); },
        [this](const corev1::Pod& pod, seconds grace) {
          workers.Evict(pod.metadata().uid(), {kShutdownReason, kShutdownMessage, kShutdownMessage}, grace);
        },
        [this](const std::string& message) { events.Node("Normal", "Shutdown", message); },
        [this] { node.UpdateNow(); }};
  }

  void RunShutdown(std::stop_token stop) {
    if (auto ran = shutdown.Run(stop); !ran)
      log::Error("Failed to start node shutdown manager", {{"error", ran.error()}});
    AwaitStop(stop);
  }

  void CollectDead(const ContainerGcOptions& options, std::stop_token stop) {
    if (auto done = CollectContainers(parts.runtime, context.paths, options, clock.Now(), stop);
        !done && !stop.stop_requested())
      log::Debug("Cannot collect dead containers", {{"error", done.error()}});
  }

  void Preempt(const corev1::Pod& pod) {
    events.Pod(pod, "", "Warning", kPreempting, kPreempted);
    workers.Evict(pod.metadata().uid(), {kPreempting, kPreempted, kPreemptedTarget}, seconds(1));
  }

  PodSyncer::Dependencies Dependencies() {
    return {parts.runtime,
            images,
            volumes,
            parts.cgroups,
            objects,
            *handlers,
            probes,
            statuses,
            executor,
            start_gate,
            [this] { return features.AddTo(context); },
            [this](const corev1::Pod& pod) { return Admit(pod); },
            [this](const corev1::Pod& pod, const std::string& container, const std::string& type,
                   const std::string& reason,
                   const std::string& message) { events.Pod(pod, container, type, reason, message); },
            [this](const std::string& uid, const PodRuntimeStatus& status) { pleg.Seen(uid, status); },
            [this](const std::string& uid, const PodRuntimeStatus& status) {
              return pleg.Unchanged(uid, status);
            },
            [this](const std::string& name) { return HandlerOf(name); },
            user_namespaces,
            allocations,
            [this](const corev1::Pod& wish, const corev1::Pod& granted) {
              return RefuseResize(wish, granted, RoomFor(wish.metadata().uid()));
            },
            [this](const corev1::Pod& pod, const corev1::Container& container, cri::ContainerConfig& config,
                   std::stop_token stop) -> Result<> {
              return parts.resources ? parts.resources->Configure(pod, container, config, stop) : Result<>();
            },
            [this](const std::string& uid) {
              if (parts.resources) parts.resources->Release(uid);
            },
            [this](const std::string& uid, corev1::PodStatus& status) {
              if (parts.resources) parts.resources->FillResourceHealth(uid, status);
            }};
  }

  void ConnectResources() {
    parts.resources->Connect(
        {[this] { return workers.Active(""); },
         [this](const std::string& ns, const std::string& name) { return workers.Find(ns, name); },
         [this](const std::string& uid) { return workers.Runtime(uid); }, [this] { node.UpdateNow(); },
         [this](const std::string& uid) { workers.Touch(uid); }});
  }

  // The runtime's own name of what a RuntimeClass stands for.
  Result<std::string> HandlerOf(const std::string& name) {
    if (name.empty()) return std::string();
    auto known = runtime_classes.Get("", name);
    if (known) return known->handler();
    return Error(Code::kNotFound,
                 "failed to get sandbox runtime: runtimeclass.node.k8s.io \"" + name + "\" not found");
  }

  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod) {
    if (auto failure = shutdown.Admit()) return failure;
    if (auto failure = CheckFeatures(pod, features.AddTo(context), settings.config.allowed_unsafe_sysctls))
      return failure;
    if (auto failure = admission.Admit(pod)) return failure;
    return parts.resources ? parts.resources->Admit(pod) : std::nullopt;
  }

  NodeFacts Facts(std::stop_token stop) {
    NodeFacts facts;
    const std::set<Pressure> pressures = evictions.pressures();
    facts.memory_pressure = pressures.count(Pressure::kMemory) > 0;
    facts.disk_pressure = pressures.count(Pressure::kDisk) > 0;
    facts.pid_pressure = pressures.count(Pressure::kPid) > 0;
    facts.runtime = parts.runtime.Status(stop);
    if (facts.runtime) features.Learn(*facts.runtime);
    if (auto version = parts.runtime.GetVersion(stop))
      facts.runtime_version = version->name + "://" + version->version;
    if (auto list = parts.images.ListImages(stop)) facts.images = std::move(*list);
    facts.unhealthy = pleg.Unhealthy();
    facts.volumes_in_use = volumes.VolumesInUse();
    for (size_t i = 0; node_options.ips_given && parts.check_node_ip && i < node_options.ips.size(); ++i)
      if (auto valid = parts.check_node_ip(node_options.ips[i]); !valid)
        facts.address_problem = std::string("failed to validate ") + (i ? "secondaryNodeIP: " : "nodeIP: ") +
                                valid.error().message();
    facts.shutting_down = shutdown.shutting_down();
    if (parts.resources)
      for (const auto& [name, amount] : parts.resources->ExtendedResources())
        facts.extended[name] = {amount.capacity, amount.allocatable};
    return facts;
  }

  // Together: the probes wait for those under way, whose sockets have to hear of the stop as well.
  Result<> RunProbes(std::stop_token stop) {
    Result<> result;
    std::stop_source both;
    std::stop_callback on_stop(stop, [&both] { both.request_stop(); });
    std::jthread answers([&] {
      result = sockets.Run(both.get_token());
      both.request_stop();
    });
    probes.Run(both.get_token());
    answers.join();
    return result;
  }

  void RunOomWatch(std::stop_token stop) {
    auto watched = WatchOom(
        [this](const OomKill& kill) {
          if (kill.cgroup != "/") return;  // a container's own limit: its status tells
          events.Node("Warning", "SystemOOM",
                      "System OOM encountered, victim process: " + kill.process +
                          ", pid: " + std::to_string(kill.pid));
        },
        stop);
    if (!watched) log::Warn("Kills for lack of memory are not watched", {{"error", watched.error()}});
    AwaitStop(stop);
  }

  Result<> RunContainerGc(std::stop_token stop) {
    while (Pause(clock, kContainerGc, stop)) CollectDead(MakeContainerGcOptions(settings.flags), stop);
    return {};
  }

  void RunFiles(std::stop_token stop) {
    const KubeletConfig& config = settings.config;
    RunFileSource(
        {config.static_pod_path, node_options.name, config.file_check_frequency},
        [this](std::vector<corev1::Pod> found) { static_pods.Set("file", std::move(found)); }, stop);
  }
  void RunUrl(std::stop_token stop) {
    const KubeletConfig& config = settings.config;
    RunUrlSource(
        {config.static_pod_url, node_options.name, config.static_pod_url_header, config.http_check_frequency},
        [this](std::vector<corev1::Pod> found) { static_pods.Set("http", std::move(found)); }, clock, stop);
  }

  KubeletParts parts;
  const Settings settings;
  Clock& clock;
  const NodeOptions node_options;
  EventReporter events;
  client::InformerFactory informers;
  client::Informer<corev1::Pod>& pods;
  client::Informer<corev1::Node>& nodes;
  client::Informer<api::node::v1::RuntimeClass>& runtime_classes;
  ApiObjects objects;
  NodeManager node;
  const NodeContext context;
  RuntimeFeatures features;
  UserNamespaces user_namespaces;
  PodStarts starts;
  SocketProber sockets;
  std::unique_ptr<HandlerRunner> handlers;
  ImageManager images;
  VolumeManager volumes;
  StatusManager statuses;
  Executor executor;
  StartGate start_gate{std::max(10u, 4 * std::thread::hardware_concurrency())};
  ProbeManager probes;
  Pleg pleg;
  UsageReader usage;
  LogRotator log_rotator;
  ImageGc image_gc;
  EvictionManager evictions;
  Admission admission;
  Allocations allocations;
  PodSyncer syncer;
  PodWorkers workers;
  ShutdownManager shutdown;
  StaticPods static_pods;
  Housekeeping housekeeping;
  Mutex mutex;
  bool takes_api_pods GUARDED_BY(mutex) = false;
  StatsProvider stats;
  Backend backend;
};

Kubelet::Kubelet(KubeletParts parts, const Settings& settings, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(parts), settings, clock)) {}
Kubelet::~Kubelet() = default;

server::KubeletBackend& Kubelet::backend() { return impl_->backend; }
const std::string& Kubelet::node_name() const { return impl_->node_options.name; }
std::vector<corev1::NodeAddress> Kubelet::Addresses() const {
  auto own = impl_->nodes.Get("", node_name());
  if (!own) return {};
  return {own->status().addresses().begin(), own->status().addresses().end()};
}

namespace {

// A service that is of use from its first moment on, and runs until the stop.
ServiceGroup::Service Task(std::string name, std::vector<std::string> needs,
                           std::function<void(std::stop_token stop)> run) {
  return {std::move(name), std::move(needs),
          [run = std::move(run)](std::stop_token stop, const ServiceGroup::Ready& ready) -> Result<> {
            ready();
            run(stop);
            return {};
          }};
}

}  // namespace

void Kubelet::AddServices(ServiceGroup& group) {
  Impl& k = *impl_;
  using Ready = ServiceGroup::Ready;
  group.Add({"cgroups", {}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               RETURN_IF_ERROR(MakeDirs(k.context.paths.Pods(), 0750));
               RETURN_IF_ERROR(MakeDirs(k.context.paths.logs));
               RETURN_IF_ERROR(k.parts.cgroups.Start(k.context));
               if (!k.parts.cgroup_v2) k.events.Node("Warning", "CgroupV1", kCgroupV1Warning);
               if (Enforces(k.settings.config, "pods"))
                 k.events.Node("Normal", "NodeAllocatableEnforced",
                               "Updated Node Allocatable limit across pods");
               ready();
               AwaitStop(stop);
               return {};
             }});
  if (k.parts.resources) k.parts.resources->AddServices(group);
  group.Add({"probes", {}, [&k](std::stop_token stop, Ready ready) {
               ready();
               return k.RunProbes(stop);
             }});
  group.Add({"runtime-events", {"cgroups"}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               k.pleg.Run(stop, ready);
               return {};
             }});
  // Static pods need no API server: workers begin without one.
  group.Add(Task("pods", {"runtime-events"}, [&k](std::stop_token stop) { k.workers.Run(stop); }));
  if (!k.settings.config.static_pod_path.empty())
    group.Add(Task("static-pod-files", {"pods"}, [&k](std::stop_token stop) { k.RunFiles(stop); }));
  if (!k.settings.config.static_pod_url.empty())
    group.Add(Task("static-pod-url", {"pods"}, [&k](std::stop_token stop) { k.RunUrl(stop); }));
  group.Add(Task("container-logs", {"pods"}, [&k](std::stop_token stop) { k.log_rotator.Run(stop); }));
  group.Add(Task("container-gc", {"pods"}, [&k](std::stop_token stop) { (void)k.RunContainerGc(stop); }));
  group.Add(Task("image-gc", {"pods"}, [&k](std::stop_token stop) { k.image_gc.Run(stop); }));
  if (k.parts.logind && k.shutdown.enabled())
    group.Add(Task("node-shutdown", {"pods"}, [&k](std::stop_token stop) { k.RunShutdown(stop); }));
  group.Add(Task("eviction", {"pods"}, [&k](std::stop_token stop) { k.evictions.Run(stop); }));
  group.Add(Task("oom-watch", {}, [&k](std::stop_token stop) { k.RunOomWatch(stop); }));
  if (!k.parts.standalone) AddApiServices(group);
  std::vector<std::string> known = {"pods"};
  if (!k.parts.standalone) known.push_back("api-pods");
  group.Add(Task("housekeeping", known, [&k](std::stop_token stop) { k.housekeeping.Run(stop); }));
}

void Kubelet::AddApiServices(ServiceGroup& group) {
  Impl& k = *impl_;
  using Ready = ServiceGroup::Ready;
  group.Add(Task("events", {}, [&k](std::stop_token stop) { k.events.Run(stop); }));
  group.Add(Task("pod-status", {}, [&k](std::stop_token stop) { k.statuses.Run(stop); }));
  if (k.objects.pod_certificates())
    group.Add(Task("pod-certificates", {}, [&k](std::stop_token stop) {
      k.objects.pod_certificates()->Watch([&k](const std::string& uid) { k.workers.Touch(uid); }, stop);
    }));
  group.Add(Task("lease", {}, [&k](std::stop_token stop) { (void)k.node.RunLease(stop); }));
  group.Add({"node", {}, [&k](std::stop_token stop, Ready ready) { return k.node.RunStatus(stop, ready); }});
  group.Add({"informers", {"runtime-events"}, [&k](std::stop_token stop, Ready ready) {
               return k.informers.Run(stop, ready);
             }});
  group.Add(
      Task("mirror-pods", {"informers"}, [&k](std::stop_token stop) { k.static_pods.RunMirrors(stop); }));
  group.Add({"api-pods",
             {"informers", "node", "pods", "pod-status"},
             [&k](std::stop_token stop, Ready ready) -> Result<> {
               k.TakeApiPods();
               ready();
               AwaitStop(stop);
               return {};
             }});
}

}  // namespace keelson::kubelet
