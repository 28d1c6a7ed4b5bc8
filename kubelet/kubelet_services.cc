#include "kubelet/kubelet_impl.h"

#include "kubelet/component_options.h"
#include "kubelet/node/host_check.h"
#include "kubelet/node/oom_watcher.h"
#include "kubelet/staticpod/sources.h"
#include "kubelet/volume/csi/volume_data.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::kubelet {

using std::chrono::seconds;

namespace {

constexpr std::chrono::minutes kContainerGc(1);
constexpr seconds kRuntimeRetry(1);

void AwaitStop(std::stop_token stop) {
  Mutex mutex;
  CondVar cv;
  MutexLock lock(mutex);
  cv.wait(mutex, stop, [] { return false; });
}

// Nothing could be run without the runtime's answer. None at the stop.
RunningPods AwaitRunningPods(cri::RuntimeService& runtime, const std::string& source, Clock& clock,
                             std::stop_token stop) {
  Result<RunningPods> running = FindRunningPods(runtime, source, stop);
  while (!running && Pause(clock, kRuntimeRetry, stop)) running = FindRunningPods(runtime, source, stop);
  return running ? std::move(*running) : RunningPods();
}

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

void Kubelet::Impl::RunShutdown(std::stop_token stop) {
  if (auto ran = shutdown.Run(stop); !ran) {
    log::Error("Failed to start node shutdown manager", {{"err", ran.error()}});
  }
  AwaitStop(stop);
}

void Kubelet::Impl::CollectDead(const ContainerGcOptions& options, std::stop_token stop) {
  if (auto done = CollectContainers(deps.runtime, context.paths, options, clock.Now(), stop);
      !done && !stop.stop_requested()) {
    log::Debug("Cannot collect dead containers", {{"err", done.error()}});
  }
}

Result<> Kubelet::Impl::RunProbes(std::stop_token stop) {
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

void Kubelet::Impl::RunOomWatch(std::stop_token stop) {
  auto watched = WatchOom(
      [this](const OomKill& kill) {
        if (kill.cgroup != "/") return;  // a container's own limit: its status tells
        events.Node(
            "Warning", "SystemOOM",
            "System OOM encountered, victim process: " + kill.process + ", pid: " + std::to_string(kill.pid));
      },
      stop);
  if (!watched) log::Warn("Kills for lack of memory are not watched", {{"err", watched.error()}});
  AwaitStop(stop);
}

Result<> Kubelet::Impl::RunContainerGc(std::stop_token stop) {
  while (Pause(clock, kContainerGc, stop)) CollectDead(MakeContainerGcOptions(settings.flags), stop);
  return {};
}

void Kubelet::Impl::RunVolumeHealth(std::stop_token stop) {
  const auto period = settings.config.volume_stats_agg_period;
  while (Pause(clock, period, stop)) {
    for (const PodVolume& volume : volumes.volumes().All()) {
      const bool tells = volume.plugin == csi::kPluginName && !volume.block && !volume.path.empty();
      if (tells) (void)stats.OfMount(volume.Directory());
    }
  }
}

void Kubelet::Impl::RunFiles(std::stop_token stop) {
  const KubeletConfig& config = settings.config;
  RunFileSource(
      {config.static_pod_path, node_options.name, config.file_check_frequency,
       AwaitRunningPods(deps.runtime, "file", clock, stop)},
      [this](std::vector<corev1::Pod> found) { static_pods.Set("file", std::move(found)); }, stop);
}

void Kubelet::Impl::RunUrl(std::stop_token stop) {
  const KubeletConfig& config = settings.config;
  RunUrlSource(
      {config.static_pod_url, node_options.name, config.static_pod_url_header, config.http_check_frequency,
       AwaitRunningPods(deps.runtime, "http", clock, stop)},
      [this](std::vector<corev1::Pod> found) { static_pods.Set("http", std::move(found)); }, clock, stop);
}

void Kubelet::AddNodeServices(ServiceGroup& group) {
  Impl& k = *impl_;
  using Ready = ServiceGroup::Ready;
  group.Add({"cgroups", {}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               KEELSON_RETURN_IF_ERROR(MakeDirs(k.context.paths.Pods(), 0750));
               KEELSON_RETURN_IF_ERROR(MakeDirs(k.context.paths.logs));
               KEELSON_RETURN_IF_ERROR(k.deps.cgroups.Start(k.context));
               if (!k.deps.cgroup_v2) k.events.Node("Warning", "CgroupV1", kCgroupV1Warning);
               if (Enforces(k.settings.config, "pods")) {
                 k.events.Node("Normal", "NodeAllocatableEnforced",
                               "Updated Node Allocatable limit across pods");
               }
               ready();
               AwaitStop(stop);
               return {};
             }});
  if (k.deps.container_manager) k.deps.container_manager->AddServices(group);
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
  if (!k.settings.config.static_pod_path.empty()) {
    group.Add(Task("static-pod-files", {"pods"}, [&k](std::stop_token stop) { k.RunFiles(stop); }));
  }
  if (!k.settings.config.static_pod_url.empty()) {
    group.Add(Task("static-pod-url", {"pods"}, [&k](std::stop_token stop) { k.RunUrl(stop); }));
  }
  group.Add(Task("container-logs", {"pods"}, [&k](std::stop_token stop) { k.log_rotator.Run(stop); }));
  group.Add(Task("container-gc", {"pods"}, [&k](std::stop_token stop) { (void)k.RunContainerGc(stop); }));
  group.Add(Task("image-gc", {"pods"}, [&k](std::stop_token stop) { k.image_gc.Run(stop); }));
  if (k.deps.logind && k.shutdown.enabled()) {
    group.Add(Task("node-shutdown", {"pods"}, [&k](std::stop_token stop) { k.RunShutdown(stop); }));
  }
  group.Add(Task("eviction", {"pods"}, [&k](std::stop_token stop) { k.evictions.Run(stop); }));
  group.Add(Task("oom-watch", {}, [&k](std::stop_token stop) { k.RunOomWatch(stop); }));
}

void Kubelet::AddApiServices(ServiceGroup& group) {
  Impl& k = *impl_;
  using Ready = ServiceGroup::Ready;
  const auto housekeep = [&k](std::stop_token stop) { k.housekeeping.Run(stop); };
  if (k.deps.standalone) {
    group.Add(Task("pod-cidr", {"runtime-events"}, [&k](std::stop_token stop) {
      k.pod_cidr.UpdateRuntime(nullptr, stop);
      AwaitStop(stop);
    }));
    group.Add(Task("housekeeping", {"pods"}, housekeep));
    return;
  }
  group.Add(Task("events", {}, [&k](std::stop_token stop) { k.events.Run(stop); }));
  group.Add(Task("pod-status", {}, [&k](std::stop_token stop) { k.statuses.Run(stop); }));
  if (k.objects.pod_certificates()) {
    group.Add(Task("pod-certificates", {}, [&k](std::stop_token stop) {
      k.objects.pod_certificates()->Watch([&k](const std::string& uid) { k.workers.RequestSync(uid); }, stop);
    }));
  }
  if (k8s::FeatureEnabled(k.settings.config.feature_gates, "CSIVolumeHealth") &&
      k.settings.config.volume_stats_agg_period.count() > 0) {
    group.Add(Task("volume-health", {"pods"}, [&k](std::stop_token stop) { k.RunVolumeHealth(stop); }));
  }
  group.Add(Task("lease", {}, [&k](std::stop_token stop) { (void)k.node.RunLease(stop); }));
  group.Add({"node", {}, [&k](std::stop_token stop, Ready ready) { return k.node.RunStatus(stop, ready); }});
  group.Add({"informers", {"runtime-events"}, [&k](std::stop_token stop, Ready ready) {
               return k.informers.Run(stop, ready);
             }});
  group.Add(Task("csi-node-updates", {"informers"},
                 [&k](std::stop_token stop) { k.csi_registration.RunUpdates(stop); }));
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
  group.Add(Task("housekeeping", {"pods", "api-pods"}, housekeep));
}

}  // namespace keelson::kubelet
