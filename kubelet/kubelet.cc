#include "kubelet/kubelet_impl.h"

#include "kubelet/component_options.h"
#include "kubelet/objects/limited_transport.h"
#include "kubelet/pod/admission.h"
#include "lib/k8s/feature_gates.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

using std::chrono::seconds;

namespace {

constexpr char kPreempting[] = "Preempting", kPreempted[] = "Preempted in order to admit critical pod",
               kPreemptedTarget[] = "Pod was preempted by Kubelet to accommodate a critical pod";

client::ListOptions ByField(const std::string& selector) {
  client::ListOptions options;
  options.field_selector = selector;
  return options;
}

}  // namespace

Kubelet::Impl::Impl(KubeletDependencies given, const Settings& given_settings, Clock& given_clock)
    : deps(std::move(given)),
      settings(given_settings),
      clock(given_clock),
      node_options(MakeNodeOptions(settings, deps.runtime_name + "://" + deps.runtime_version)),
      api(LimitRequests(deps.api, settings.config.kube_api_qps, settings.config.kube_api_burst, clock)),
      events(LimitRequests(deps.api, settings.config.event_record_qps, settings.config.event_burst, clock),
             node_options.name, deps.standalone, clock),
      informers(api, clock),
      pods(informers.Get<corev1::Pod>(ByField("spec.nodeName=" + node_options.name))),
      nodes(informers.Get<corev1::Node>(ByField("metadata.name=" + node_options.name))),
      runtime_classes(informers.Get<api::node::v1::RuntimeClass>()),
      csi_driver_objects(informers.Get<api::storage::v1::CSIDriver>()),
      objects(api, informers.Get<corev1::Service>(),
              {settings.config.config_map_and_secret_change_detection_strategy,
               [this] { return ObjectTtl(nodes.Get("", node_options.name).get()); }},
              clock),
      image_tokens(objects, clock),
      node(
          deps.api, node_options, [this](std::stop_token stop) { return Facts(stop); }, clock,
          [this](const NodeEvent& event) { events.Node(event.type, event.reason, event.message); }),
      context(MakeNodeContext(settings, node_options, node.machine(), deps.cgroup_v2)),
      features(deps.runtime),
      pod_cidr(deps.runtime, settings.config.pod_cidr),
      user_namespaces(context.paths, static_cast<uint32_t>(settings.config.user_namespaces_ids_per_pod)),
      startup_latency(clock),
      handlers(NewHandlerRunner(deps.runtime, sockets, clock)),
      images(deps.images,
             MakeImageManagerOptions(settings, deps.credential_providers, Accounts(), startup_latency),
             clock),
      csi_node(api, node_options.name),
      csi_registration(CsiDependencies(), clock),
      volumes(
          deps.mounter, objects, VolumePlugins(), [this] { return nodes.Get("", node_options.name); },
          [this] { node.UpdateNow(); },
          {SeLinuxLabels::OfHost(), k8s::FeatureEnabled(settings.config.feature_gates, "SELinuxMount")},
          [this](const corev1::Pod& pod, const corev1::PersistentVolumeClaim& claim, const std::string& type,
                 const std::string& reason, const std::string& message) {
            events.Pod(pod, "", type, reason, message);
            events.Claim(claim, type, reason, message);
          }),
      statuses(deps.api, clock),
      probes(
          *handlers, executor, [this](const std::string& uid) { workers.ProbeResultsChanged(uid); },
          [this](const corev1::Pod& pod, const std::string& container, const std::string& reason,
                 const std::string& message) { events.Pod(pod, container, "Warning", reason, message); },
          clock),
      pleg(
          deps.runtime, [this](const std::string& uid) { workers.RequestSync(uid); }, clock),
      signals(deps.runtime, deps.images, deps.cgroups, context.paths, node.machine().memory_bytes,
              PodsMemory(node.machine(), node_options.reservations), node.machine().max_pids),
      log_rotator(
          deps.runtime, [this] { return RunningLogs(); }, MakeLogRotationOptions(settings.config), clock),
      image_gc(
          deps.runtime, deps.images, [this](std::stop_token stop) { return ImageSpace(deps.images, stop); },
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
                   if (deps.container_manager) {
                     deps.container_manager->UpdatePluginResources(uid, allocatable);
                   }
                 }},
                node_options, context.allocatable),
      allocations(context.paths),
      resizes({allocations,
               [this](const corev1::Pod& wish, const corev1::Pod& granted) {
                 return RefuseResize(wish, granted, RoomFor(wish.metadata().uid()));
               },
               [this](const std::string& uid) { workers.RequestSync(uid); }},
              clock),
      syncer(SyncerDependencies(), MakePodSyncerOptions(settings, deps.runtime_name), clock),
      workers(syncer, statuses, executor, WorkerOptions(), clock),
      volume_meter(volumes, context.paths, TellAbnormalVolumes()),
      shutdown(ShutdownDependencies(), ShutdownPeriods(settings.config)),
      static_pods(StaticDependencies(), StaticPodSources(settings.config), clock),
      housekeeping({deps.runtime, deps.cgroups, volumes, pleg, workers, deps.container_manager,
                    [this] { return static_pods.ready(); }, [this] { return Granted(""); }},
                   context, clock),
      stats(
          deps.runtime, deps.images, deps.cgroups, context.paths, [this] { return workers.Pods(); },
          [this](const std::string& uid) { return workers.RuntimeStatus(uid); },
          [this](const std::string& uid, const std::string& path) -> std::optional<VolumeName> {
            auto known = volumes.volumes().FindByPath(uid, path);
            if (!known) return std::nullopt;
            return VolumeName{known->volume, known->claim};
          },
          settings.config.volume_stats_agg_period, clock, MeasureVolumes()),
      backend(workers, statuses, probes, volumes, deps.runtime, stats, node_options.name, settings,
              HealthChecks()) {
  pods.AddHandler([this](const client::Change<corev1::Pod>& change) { PodChanged(change); });
  nodes.AddHandler([this](const client::Change<corev1::Node>& change) { WakePodsThatWaitForAttach(change); });
  csi_driver_objects.AddHandler(
      [this](const client::Change<api::storage::v1::CSIDriver>&) { csi_registration.Look(); });
  if (!deps.standalone) objects.ReadCsiDrivers(csi_driver_objects);
  objects.ReadVolumesBy(deps.api);
  volumes.Restore(context.paths);
  if (deps.container_manager) ConnectContainerManager();
  if (!deps.standalone && k8s::FeatureEnabled(settings.config.feature_gates, "PodCertificateRequest")) {
    objects.IssuePodCertificates(std::make_unique<PodCertificates>(CertificateDependencies(), clock));
  }
}

void Kubelet::Impl::TakeApiPods() {
  MutexLock lock(mutex);
  takes_api_pods = true;
  for (const auto& pod : pods.List()) {
    if (!k8s::IsMirror(*pod)) UpdatePod(pod);
  }
}

void Kubelet::Impl::UpdatePod(const std::shared_ptr<const corev1::Pod>& pod) {
  objects.SetPod(*pod);
  workers.UpdatePod(pod);
}

void Kubelet::Impl::RemovePod(const std::string& uid) {
  objects.RemovePod(uid);
  workers.RemovePod(uid);
}

std::optional<std::string> Kubelet::Impl::OwnUid() const {
  auto own = nodes.Get("", node_options.name);
  return own ? std::optional(own->metadata().uid()) : std::nullopt;
}

void Kubelet::Impl::PodChanged(const client::Change<corev1::Pod>& change) {
  if (k8s::IsMirror(change.object())) {
    static_pods.MirrorChanged(change.new_object ? change.new_object : change.old_object,
                              change.new_object == nullptr);
    return;
  }
  if (change.new_object) startup_latency.ObservePodOnWatch(*change.new_object);
  MutexLock lock(mutex);
  if (!takes_api_pods) return;
  if (change.new_object) {
    // A pod that was deleted and made again between two looks comes as an update.
    if (change.old_object && change.old_object->metadata().uid() != change.new_object->metadata().uid()) {
      RemovePod(change.old_object->metadata().uid());
    }
    UpdatePod(change.new_object);
  } else {
    RemovePod(change.old_object->metadata().uid());
  }
}

std::vector<Admission::PodPtr> Kubelet::Impl::Granted(const std::string& except_uid) const {
  std::vector<Admission::PodPtr> out = workers.ActivePods(except_uid);
  for (auto& pod : out) pod = allocations.Granted(pod);
  return out;
}

std::vector<ContainerLog> Kubelet::Impl::RunningLogs() const {
  std::vector<ContainerLog> out;
  for (const std::string& uid : workers.Uids()) {
    const auto seen = workers.RuntimeStatus(uid);
    if (!seen) continue;
    for (const ContainerRecord& record : seen->containers) {
      if (record.state == cri::ContainerState::kRunning && !record.log_path.empty()) {
        out.push_back({record.id, record.log_path});
      }
    }
  }
  return out;
}

NodeRoom Kubelet::Impl::RoomFor(const std::string& uid) const {
  NodeRoom room;
  room.allocatable = context.allocatable;
  const auto others = Granted(uid);
  for (const auto& other : others) k8s::Add(room.used_by_others, k8s::PodRequests(*other));
  room.used_by_others["pods"] = api::Amount::FromInt(static_cast<int64_t>(others.size()));
  room.static_cpus = settings.config.cpu_manager_policy == "static";
  room.static_memory = settings.config.memory_manager_policy == "Static";
  return room;
}

void Kubelet::Impl::Preempt(const corev1::Pod& pod) {
  events.Pod(pod, "", "Warning", kPreempting, kPreempted);
  workers.EvictPod(pod.metadata().uid(), {kPreempting, kPreempted, kPreemptedTarget}, seconds(1));
}

Result<std::string> Kubelet::Impl::HandlerOf(const std::string& name) {
  if (name.empty()) return std::string();
  auto known = runtime_classes.Get("", name);
  if (known) return known->handler();
  return Error(Code::kNotFound,
               "failed to get sandbox runtime: runtimeclass.node.k8s.io \"" + name + "\" not found");
}

std::optional<k8s::AdmitFailure> Kubelet::Impl::Admit(const corev1::Pod& pod) {
  if (auto failure = shutdown.Admit()) return failure;
  if (auto failure = CheckFeatures(pod, features.AddTo(context), settings.config.allowed_unsafe_sysctls)) {
    return failure;
  }
  if (auto failure = admission.Admit(pod)) return failure;
  return deps.container_manager ? deps.container_manager->Admit(pod) : std::nullopt;
}

NodeFacts Kubelet::Impl::Facts(std::stop_token stop) {
  NodeFacts facts;
  const std::set<Pressure> pressures = evictions.pressures();
  facts.memory_pressure = pressures.count(Pressure::kMemory) > 0;
  facts.disk_pressure = pressures.count(Pressure::kDisk) > 0;
  facts.pid_pressure = pressures.count(Pressure::kPid) > 0;
  facts.runtime = deps.runtime.Status(stop);
  if (facts.runtime) features.Learn(*facts.runtime);
  pod_cidr.UpdateRuntime(nodes.Get("", node_options.name).get(), stop);
  if (auto version = deps.runtime.GetVersion(stop)) {
    facts.runtime_version = version->name + "://" + version->version;
  }
  if (auto list = deps.images.ListImages(stop)) facts.images = std::move(*list);
  facts.unhealthy = pleg.Unhealthy();
  facts.volumes_in_use = volumes.VolumesInUse();
  InitializeCsiNode(facts, stop);
  for (size_t i = 0; node_options.ips_given && deps.check_node_ip && i < node_options.ips.size(); ++i) {
    if (auto valid = deps.check_node_ip(node_options.ips[i]); !valid) {
      facts.address_problem = std::string("failed to validate ") + (i ? "secondaryNodeIP: " : "nodeIP: ") +
                              valid.error().message();
    }
  }
  facts.shutting_down = shutdown.shutting_down();
  if (deps.container_manager) {
    for (const auto& [name, amount] : deps.container_manager->DevicePluginResources()) {
      facts.extended[name] = {amount.capacity, amount.allocatable};
    }
  }
  return facts;
}

Kubelet::Kubelet(KubeletDependencies deps, const Settings& settings, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(deps), settings, clock)) {}
Kubelet::~Kubelet() = default;

server::KubeletBackend& Kubelet::backend() { return impl_->backend; }
const std::string& Kubelet::node_name() const { return impl_->node_options.name; }
std::vector<corev1::NodeAddress> Kubelet::Addresses() const {
  auto own = impl_->nodes.Get("", node_name());
  if (!own) return {};
  return {own->status().addresses().begin(), own->status().addresses().end()};
}

}  // namespace keelson::kubelet
