#include "kubelet/kubelet.h"

#include <algorithm>
#include <sstream>
#include <thread>

#include "kubelet/api_objects.h"
#include "kubelet/backend.h"
#include "kubelet/container/labels.h"
#include "kubelet/node/node_status.h"
#include "kubelet/pod/pleg.h"
#include "kubelet/pod/pod_workers.h"
#include "lib/base/file.h"
#include "lib/client/events.h"
#include "lib/client/informer.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kHousekeeping(2);

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    if (!part.empty()) out.push_back(part);
  return out;
}

// "key=value:effect"
corev1::Taint ParseTaint(const std::string& text) {
  corev1::Taint taint;
  size_t colon = text.rfind(':'), equals = text.find('=');
  taint.set_effect(colon == std::string::npos ? "NoSchedule" : text.substr(colon + 1));
  std::string key = text.substr(0, colon);
  taint.set_key(key.substr(0, equals));
  if (equals != std::string::npos && equals < key.size()) taint.set_value(key.substr(equals + 1));
  return taint;
}

NodeOptions MakeNodeOptions(const Settings& settings, const KubeletParts& parts) {
  NodeOptions out;
  out.hostname = settings.flags.hostname_override.empty() ? HostName() : settings.flags.hostname_override;
  out.name = out.hostname;
  out.ips = SplitList(settings.flags.node_ip);
  if (out.ips.empty())
    if (std::string address = DefaultAddress(); !address.empty()) out.ips = {address};
  out.root_dir = settings.flags.root_dir;
  out.port = settings.config.port;
  out.runtime_version = parts.runtime_name + "://" + parts.runtime_version;
  out.reservations = {settings.config.system_reserved, settings.config.kube_reserved,
                      settings.config.eviction_hard, settings.config.max_pods};
  out.register_node = settings.config.register_node;
  out.update_frequency = settings.config.node_status_update_frequency;
  out.report_frequency = settings.config.node_status_report_frequency;
  out.lease_seconds = settings.config.node_lease_duration_seconds;
  std::string arch = ReadMachine(out.root_dir).architecture;
  out.labels = {{"kubernetes.io/hostname", out.hostname},
                {"kubernetes.io/os", "linux"},
                {"kubernetes.io/arch", arch},
                {"beta.kubernetes.io/os", "linux"},
                {"beta.kubernetes.io/arch", arch}};
  for (const std::string& label : SplitList(settings.flags.node_labels)) {
    size_t equals = label.find('=');
    out.labels[label.substr(0, equals)] = equals == std::string::npos ? "" : label.substr(equals + 1);
  }
  for (const std::string& taint : SplitList(settings.flags.register_with_taints))
    out.taints.push_back(ParseTaint(taint));
  return out;
}

NodeContext MakeContext(const Settings& settings, const NodeOptions& node, const Machine& machine,
                        bool cgroup_v2) {
  NodeContext out;
  out.paths = {settings.flags.root_dir, settings.config.pod_logs_dir};
  out.node_name = node.name;
  out.node_ips = node.ips;
  out.allocatable = AllocatableOf(machine, node.reservations);
  out.memory_capacity = machine.memory_bytes;
  out.cluster_domain = settings.config.cluster_domain;
  out.cluster_dns = settings.config.cluster_dns;
  out.resolv_conf = settings.config.resolv_conf;
  out.cpu_cfs_quota = settings.config.cpu_cfs_quota;
  out.cpu_cfs_period_us =
      std::chrono::duration_cast<std::chrono::microseconds>(settings.config.cpu_cfs_quota_period).count();
  out.cgroup_v2 = cgroup_v2;
  out.seccomp_default = settings.config.seccomp_default;
  return out;
}

std::vector<std::unique_ptr<VolumePlugin>> Plugins(Mounter& mounter, ObjectSource& objects, Clock& clock) {
  std::vector<std::unique_ptr<VolumePlugin>> out;
  out.push_back(NewEmptyDirPlugin(mounter));
  out.push_back(NewHostPathPlugin());
  out.push_back(NewPayloadPlugin(mounter, objects, clock));
  return out;
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
        node_options(MakeNodeOptions(settings, parts)),
        events(parts.api, "kubelet", node_options.name, clock),
        informers(parts.api),
        pods(informers.Get<corev1::Pod>(ByField("spec.nodeName=" + node_options.name))),
        nodes(informers.Get<corev1::Node>(ByField("metadata.name=" + node_options.name))),
        objects(parts.api, informers.Get<corev1::Service>(), clock),
        node(
            parts.api, node_options, [this](std::stop_token stop) { return Facts(stop); }, clock),
        context(MakeContext(settings, node_options, node.machine(), parts.cgroup_v2)),
        handlers(NewHandlerRunner(parts.runtime, clock)),
        images(parts.images,
               {settings.config.serialize_image_pulls, settings.config.max_parallel_image_pulls}, clock),
        volumes(parts.mounter, Plugins(parts.mounter, objects, clock)),
        statuses(parts.api, clock),
        probes(
            *handlers, executor, [this](const std::string& uid) { workers.Touch(uid); },
            [this](const corev1::Pod& pod, const std::string& container, const std::string& reason,
                   const std::string& message) { Event(pod, container, "Warning", reason, message); },
            clock),
        pleg(
            parts.runtime, [this](const std::string& uid) { workers.Touch(uid); }, clock),
        syncer(Dependencies(),
               {std::chrono::seconds(10), settings.config.max_container_restart_period, parts.runtime_name},
               clock),
        workers(syncer, statuses, executor, {settings.config.sync_frequency}, clock),
        backend(workers, statuses, parts.runtime, parts.cgroups, node_options.name, settings.config,
                [this]() -> Result<> {
                  if (auto problem = pleg.Unhealthy()) return Error(Code::kUnavailable, *problem);
                  return {};
                }) {
    pods.AddHandler([this](const client::Change<corev1::Pod>& change) {
      if (change.new_object) {
        // A pod that was deleted and made again between two looks comes as an update.
        if (change.old_object && change.old_object->metadata().uid() != change.new_object->metadata().uid())
          workers.Remove(change.old_object->metadata().uid());
        workers.Update(change.new_object);
      } else {
        workers.Remove(change.old_object->metadata().uid());
      }
    });
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
            [this] { return context; },
            [this](const corev1::Pod& pod) { return Admit(pod); },
            [this](const corev1::Pod& pod, const std::string& container, const std::string& type,
                   const std::string& reason,
                   const std::string& message) { Event(pod, container, type, reason, message); },
            [this](const std::string& uid, const PodRuntimeStatus& status) { pleg.Seen(uid, status); }};
  }

  void Event(const corev1::Pod& pod, const std::string& container, const std::string& type,
             const std::string& reason, const std::string& message) {
    if (pod.spec().containers().empty()) return;  // only the runtime knows it
    corev1::ObjectReference reference;
    reference.set_kind("Pod");
    reference.set_api_version("v1");
    reference.set_namespace_(pod.metadata().namespace_());
    reference.set_name(pod.metadata().name());
    reference.set_uid(pod.metadata().uid());
    reference.set_resource_version(pod.metadata().resource_version());
    if (!container.empty()) {
      const auto& init = pod.spec().init_containers();
      bool is_init =
          std::any_of(init.begin(), init.end(), [&](const auto& item) { return item.name() == container; });
      reference.set_field_path(std::string(is_init ? "spec.initContainers{" : "spec.containers{") +
                               container + "}");
    }
    events.Record(reference, type, reason, message);
  }

  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod) {
    auto own = nodes.Get("", node_options.name);
    if (!own) return std::nullopt;
    corev1::Node node_object = *own;
    // The API may not have our capacity yet; we have.
    for (const auto& [name, amount] : context.allocatable)
      (*node_object.mutable_status()->mutable_allocatable())[name] = amount.ToQuantity();
    std::vector<PodWorkers::PodPtr> active = workers.Active(pod.metadata().uid());
    std::vector<const corev1::Pod*> others;
    for (const auto& other : active) others.push_back(other.get());
    auto failures = k8s::CheckAdmission(pod, node_object, others);
    if (failures.empty()) return std::nullopt;
    return failures.front();
  }

  NodeFacts Facts(std::stop_token stop) {
    NodeFacts facts;
    facts.load = ReadMachineLoad(settings.flags.root_dir);
    facts.runtime = parts.runtime.Status(stop);
    if (auto version = parts.runtime.GetVersion(stop))
      facts.runtime_version = version->name + "://" + version->version;
    if (auto list = parts.images.ListImages(stop)) facts.images = std::move(*list);
    facts.unhealthy = pleg.Unhealthy();
    return facts;
  }

  // Takes away what nobody asks for any more: pods that were deleted while the kubelet was away, directories
  // and cgroups of pods that are no more.
  void CleanOrphans(std::stop_token stop) {
    // What is left is listed first, what is known after it: a pod that comes in between is known.
    std::set<std::string> running = pleg.Uids();
    std::set<std::string> leftovers = parts.cgroups.Uids();
    if (auto dirs = ListDir(context.paths.Pods())) leftovers.insert(dirs->begin(), dirs->end());
    std::set<std::string> known = workers.Uids();
    for (const std::string& uid : running) {
      if (known.count(uid) || stop.stop_requested()) continue;
      auto status = InspectPod(parts.runtime, uid, nullptr, stop);
      if (!status || (status->sandboxes.empty() && status->containers.empty())) continue;
      log::Info("Removing a pod that is unknown to the API",
                {{"namespace", status->ns}, {"pod", status->name}});
      workers.Orphan(*status);
      known.insert(uid);
    }
    for (const std::string& uid : leftovers) {
      if (known.count(uid) || stop.stop_requested()) continue;
      auto removed = volumes.Remove(context.paths, uid);
      if (removed) removed = parts.cgroups.Remove(uid);
      if (!removed)
        log::Debug("Cannot remove what is left of a pod", {{"uid", uid}, {"error", removed.error()}});
    }
  }

  Result<> RunHousekeeping(std::stop_token stop) {
    Mutex mutex;
    CondVar cv;
    std::stop_callback wake(stop, [&] {
      MutexLock lock(mutex);
      cv.notify_all();
    });
    while (!stop.stop_requested()) {
      CleanOrphans(stop);
      SteadyTime until = clock.SteadyNow() + kHousekeeping;
      MutexLock lock(mutex);
      while (!stop.stop_requested() && clock.SteadyNow() < until) clock.WaitUntil(mutex, cv, until);
    }
    return {};
  }

  KubeletParts parts;
  const Settings settings;
  Clock& clock;
  const NodeOptions node_options;
  client::EventRecorder events;
  client::InformerFactory informers;
  client::Informer<corev1::Pod>& pods;
  client::Informer<corev1::Node>& nodes;
  ApiObjects objects;
  NodeManager node;
  const NodeContext context;
  std::unique_ptr<HandlerRunner> handlers;
  ImageManager images;
  VolumeManager volumes;
  StatusManager statuses;
  Executor executor;
  ProbeManager probes;
  Pleg pleg;
  PodSyncer syncer;
  PodWorkers workers;
  Backend backend;
};

Kubelet::Kubelet(KubeletParts parts, const Settings& settings, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(parts), settings, clock)) {}
Kubelet::~Kubelet() = default;

server::KubeletBackend& Kubelet::backend() { return impl_->backend; }
const std::string& Kubelet::node_name() const { return impl_->node_options.name; }

void Kubelet::AddServices(ServiceGroup& group) {
  Impl& k = *impl_;
  using Ready = ServiceGroup::Ready;
  group.Add({"cgroups", {}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               RETURN_IF_ERROR(MakeDirs(k.context.paths.Pods(), 0750));
               RETURN_IF_ERROR(MakeDirs(k.context.paths.logs));
               RETURN_IF_ERROR(k.parts.cgroups.Start(k.context));
               ready();
               Mutex mutex;
               CondVar cv;
               MutexLock lock(mutex);
               cv.wait(mutex, stop, [] { return false; });
               return {};
             }});
  group.Add({"events", {}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               ready();
               k.events.Run(stop);
               return {};
             }});
  group.Add({"pod-status", {}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               ready();
               k.statuses.Run(stop);
               return {};
             }});
  group.Add({"probes", {}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               ready();
               k.probes.Run(stop);
               return {};
             }});
  group.Add({"runtime-events", {"cgroups"}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               k.pleg.Run(stop, ready);
               return {};
             }});
  group.Add({"lease", {}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               ready();
               return k.node.RunLease(stop);
             }});
  group.Add({"node", {}, [&k](std::stop_token stop, Ready ready) { return k.node.RunStatus(stop, ready); }});
  group.Add({"informers", {"runtime-events"}, [&k](std::stop_token stop, Ready ready) {
               return k.informers.Run(stop, ready);
             }});
  group.Add(
      {"pods", {"informers", "node", "pod-status"}, [&k](std::stop_token stop, Ready ready) -> Result<> {
         ready();
         k.workers.Run(stop);
         return {};
       }});
  group.Add({"housekeeping", {"pods"}, [&k](std::stop_token stop, Ready ready) -> Result<> {
               ready();
               return k.RunHousekeeping(stop);
             }});
}

}  // namespace keelson::kubelet
