#include "kubelet/cm/dra/prepare.h"
#include "kubelet/kubelet_impl.h"
#include "kubelet/volume/csi/plugin.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kTokenSeconds = 3600;  // what the API server gives to those who do not say

std::vector<component::NamedCheck> Kubelet::Impl::HealthChecks() {
  auto fine = []() -> Result<> { return {}; };
  return {{"ping", fine},
          {"log", fine},
          {"syncloop",
           [this]() -> Result<> {
             if (auto problem = pleg.Unhealthy()) return Error(Code::kUnavailable, *problem);
             return {};
           }},
          {"device-plugin", [this] {
             return deps.container_manager ? deps.container_manager->CheckRegistration() : Result<>();
           }}};
}

PodCertificates::Dependencies Kubelet::Impl::CertificateDependencies() {
  return {api, node_options.name, [this] { return OwnUid().value_or(""); },
          [this](const corev1::Pod& pod, const std::string& reason, const std::string& message) {
            events.Pod(pod, "", "Warning", reason, message);
          }};
}

AccountSource Kubelet::Impl::Accounts() {
  return {
      [this](const std::string& ns, const std::string& name) { return objects.GetServiceAccount(ns, name); },
      [this](const corev1::Pod& pod, const std::string& audience) {
        return image_tokens.Get(pod, audience, kTokenSeconds);
      }};
}

PodWorkers::Options Kubelet::Impl::WorkerOptions() {
  PodWorkers::Options out;
  out.sync_frequency = settings.config.sync_frequency;
  out.on_forgotten = [this](const std::string& uid) {
    startup_latency.DeletePod(uid);
    image_tokens.ForgetPod(uid);
    static_pods.Released(uid);
    resizes.Leave(uid);
    resizes.Retry();
  };
  return out;
}

StaticPods::Dependencies Kubelet::Impl::StaticDependencies() {
  return {api,
          [this](StaticPods::PodPtr pod) { workers.UpdatePod(std::move(pod)); },
          [this](const std::string& uid) { workers.RemovePod(uid); },
          [this] { return OwnUid(); },
          [this](const std::string& uid, StaticPods::PodPtr mirror) {
            statuses.SetMirror(uid, std::move(mirror));
          },
          node_options.name};
}

EvictionManager::Dependencies Kubelet::Impl::EvictionDependencies() {
  return {[this](std::stop_token stop) { return signals.Observe(stop); },
          [this] { return workers.ActivePods(""); },
          [this](const corev1::Pod& pod) { return signals.Usage(pod); },
          [this](const corev1::Pod& pod, const std::string& message, seconds grace) {
            events.Pod(pod, "", "Warning", "Evicted", message);
            workers.EvictPod(pod.metadata().uid(), {"Evicted", message, message}, grace);
          },
          [this](const std::string& uid) { return workers.IsPodFinished(uid); },
          [this](std::stop_token stop) {
            CollectDead({milliseconds(0), 1, -1}, stop);
          },
          [this](std::stop_token stop) {
            if (auto removed = image_gc.RemoveUnused(stop); !removed) {
              log::Warn("Cannot remove unused images", {{"err", removed.error()}});
            }
          },
          [this](const std::string& reason, const std::string& message) {
            events.Node("Warning", reason, message);
          },
          [this] { return signals.layout(); },
          [this] { return deps.cgroups.WatchMemory(); }};
}

ShutdownManager::Dependencies Kubelet::Impl::ShutdownDependencies() {
  return {
      deps.logind, [this] { return workers.ActivePods(""); },
      [this](const corev1::Pod& pod, seconds grace) {
        workers.EvictPod(pod.metadata().uid(), {kShutdownReason, kShutdownMessage, kShutdownMessage}, grace);
      },
      [this](const std::string& message) { events.Node("Normal", "Shutdown", message); },
      [this] { node.UpdateNow(); }};
}

PodSyncer::Dependencies Kubelet::Impl::SyncerDependencies() {
  return {
      deps.runtime,
      images,
      volumes,
      deps.cgroups,
      objects,
      *handlers,
      probes,
      statuses,
      executor,
      start_limiter,
      [this] { return features.AddTo(context); },
      [this](const corev1::Pod& pod) { return Admit(pod); },
      [this](const corev1::Pod& pod, const std::string& container, const std::string& type,
             const std::string& reason,
             const std::string& message) { events.Pod(pod, container, type, reason, message); },
      [this](const std::string& uid, std::shared_ptr<const PodRuntimeStatus> status) {
        pleg.Seen(uid, *status);
        workers.SetRuntimeStatus(uid, std::move(status));
      },
      [this](const std::string& uid, const PodRuntimeStatus& status) { return pleg.Unchanged(uid, status); },
      [this](const std::string& uid) { return pleg.Unknown(uid); },
      [this](const std::string& name) { return HandlerOf(name); },
      user_namespaces,
      allocations,
      resizes,
      [this](const corev1::Pod& pod, std::stop_token stop) {
        return PrepareDynamicResources(pod, [&](const std::string& ns, const std::string& name) {
          return api.With(stop).Get<api::resource::v1::ResourceClaim>(ns, name);
        });
      },
      [this](const corev1::Pod& pod, const corev1::Container& container, cri::ContainerConfig& config,
             std::stop_token stop) -> Result<> {
        return deps.container_manager
                   ? deps.container_manager->ConfigureContainer(pod, container, config, stop)
                   : Result<>();
      },
      [this](const std::string& uid) {
        if (deps.container_manager) deps.container_manager->Release(uid);
      },
      [this](const std::string& uid, corev1::PodStatus& status) {
        if (deps.container_manager) deps.container_manager->UpdateResourceHealth(uid, status);
      }};
}

void Kubelet::Impl::ConnectContainerManager() {
  deps.container_manager->Connect(
      {[this] { return workers.ActivePods(""); },
       [this](const std::string& ns, const std::string& name) { return workers.Find(ns, name); },
       [this](const std::string& uid) { return workers.RuntimeStatus(uid); }, [this] { node.UpdateNow(); },
       [this](const std::string& uid) { workers.RequestSync(uid); },
       // Without an API server there are no objects for drivers to be recorded in.
       deps.standalone ? PluginWatcher::Handlers()
                       : PluginWatcher::Handlers{{"CSIPlugin", &csi_registration}}});
}

std::vector<std::unique_ptr<VolumePlugin>> Kubelet::Impl::VolumePlugins() {
  auto plugins = NewVolumePlugins(deps.mounter, objects, clock);
  plugins.push_back(
      csi::NewPlugin(deps.mounter, objects, csi_drivers, clock,
                     [this](const std::string& driver) { csi_registration.UpdateSoon(driver); }));
  return plugins;
}

csi::Registration::Dependencies Kubelet::Impl::CsiDependencies() {
  return {csi_drivers, csi_node, [this](const std::string& driver) -> std::optional<seconds> {
            const auto object = csi_driver_objects.Get("", driver);
            if (!object || !object->spec().has_node_allocatable_update_period_seconds()) return std::nullopt;
            return seconds(object->spec().node_allocatable_update_period_seconds());
          }};
}

VolumeMeter::TellAbnormal Kubelet::Impl::TellAbnormalVolumes() {
  if (!k8s::FeatureEnabled(settings.config.feature_gates, "CSIVolumeHealth")) return {};
  return [this](const std::string& uid, const std::string& volume, const std::string& condition) {
    for (const auto& pod : workers.Pods()) {
      if (pod->metadata().uid() != uid) continue;
      events.Pod(*pod, "", "Warning", "VolumeConditionAbnormal", "Volume " + volume + ": " + condition);
    }
  };
}

SlowVolumes::Measure Kubelet::Impl::MeasureVolumes() const {
  const bool tells_health = k8s::FeatureEnabled(settings.config.feature_gates, "CSIVolumeHealth");
  return
      [measure = volume_meter.function(), tells_health](const std::string& path) -> std::optional<FsUsage> {
        const auto measured = measure(path);
        if (!measured) return FileSystemOf(path);
        if (!*measured) return std::nullopt;
        const VolumeMetrics& metrics = **measured;
        return FsUsage{metrics.capacity,
                       metrics.available,
                       metrics.used,
                       metrics.inodes,
                       metrics.inodes_free,
                       metrics.inodes_used,
                       tells_health ? metrics.abnormal : std::nullopt};
      };
}

void Kubelet::Impl::InitializeCsiNode(NodeFacts& facts, std::stop_token stop) {
  if (deps.standalone || csi_node_initialized) return;
  if (auto done = csi_node.Initialize(std::move(stop)); !done) {
    facts.csi_node_problem = "failed to initialize CSINode: " + done.error().message();
    return;
  }
  csi_node_initialized = true;
}

void Kubelet::Impl::WakePodsThatWaitForAttach(const client::Change<corev1::Node>& change) {
  if (!change.new_object) return;
  for (const std::string& uid : volumes.WaitingForAttach()) workers.RequestSync(uid);
}

}  // namespace keelson::kubelet
