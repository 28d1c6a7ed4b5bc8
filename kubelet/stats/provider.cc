#include "kubelet/stats/provider.h"

#include <algorithm>

#include "kubelet/container/labels.h"
#include "kubelet/cri/pause_image.h"
#include "kubelet/metrics/buckets.h"
#include "kubelet/metrics/stopwatch.h"
#include "kubelet/stats/directory_usage.h"
#include "lib/base/file.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::seconds kLeastInterval(1);
constexpr std::chrono::minutes kForget(10);

// What the runtime accounts to itself of a file system.
FsUsage RuntimesPart(const std::vector<cri::FilesystemUsage>& systems) {
  if (systems.empty()) return {};
  FsUsage out = FileSystemOf(systems.front().mountpoint);
  out.used = systems.front().used_bytes;
  out.inodes_used = systems.front().inodes_used;
  return out;
}

std::string LabelOf(const cri::Labels& labels, const char* name) {
  auto it = labels.find(name);
  return it == labels.end() ? "" : it->second;
}

std::string FirstLine(const std::string& path) {
  auto text = ReadFile(path);
  return text ? text->substr(0, text->find('\n')) : "";
}

// Volumes whose files are on the node's own disks or in its memory.
bool IsOwn(std::string_view plugin_dir) {
  constexpr std::string_view kOwn[] = {"kubernetes.io~configmap", "kubernetes.io~downward-api",
                                       "kubernetes.io~empty-dir", "kubernetes.io~projected",
                                       "kubernetes.io~secret"};
  return std::find(std::begin(kOwn), std::end(kOwn), plugin_dir) != std::end(kOwn);
}

// By the plugin, which the directory above the volume's is named after.
void CountVolume(const std::string& path, double seconds) {
  static metrics::Family& duration = metrics::Histograms("kubelet_volume_metric_collection_duration_seconds",
                                                         "Duration in seconds to calculate volume stats",
                                                         DefaultBuckets(), {"metric_source"});
  const size_t end = path.rfind('/'), begin = path.rfind('/', end - 1) + 1;
  std::string plugin = path.substr(begin, end - begin);
  std::replace(plugin.begin(), plugin.end(), '~', '/');
  duration.HistogramWith({plugin}).Observe(seconds);
}

}  // namespace

CpuUsage StatsProvider::Cpu(const std::string& key, uint64_t core_nanos) {
  const SteadyTime now = clock_.SteadyNow();
  auto [it, fresh] = samples_.try_emplace(key, Sample{now, core_nanos, {}});
  Sample& sample = it->second;
  const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - sample.at);
  if (!fresh && passed >= kLeastInterval) {
    const uint64_t used = core_nanos >= sample.core_nanos ? core_nanos - sample.core_nanos : 0;
    sample.nano_cores =
        static_cast<uint64_t>(static_cast<double>(used) * 1e9 / static_cast<double>(passed.count()));
    sample.at = now;
    sample.core_nanos = core_nanos;
  }
  return {clock_.Now(), core_nanos, sample.nano_cores};
}

FsUsage StatsProvider::Volume(const std::string& path) {
  const SteadyTime now = clock_.SteadyNow();
  auto it = volumes_.find(path);
  if (it != volumes_.end() && now - it->second.at < volume_period_) return it->second.usage;
  Stopwatch watch;
  const FsUsage usage = VolumeAt(path);
  CountVolume(path, watch.Seconds());
  volumes_[path] = {now, usage};
  return usage;
}

void StatsProvider::CollectFiles(PodUsageStats& item) {
  const metav1::ObjectMeta& meta = item.pod->metadata();
  const std::string logs = paths_.PodLogs(meta.namespace_(), meta.name(), meta.uid());
  for (ContainerUsageStats& container : item.containers) {
    const DirectoryUsage used = UsageOfDirectory(logs + "/" + container.runtime.name);
    container.log_bytes = static_cast<uint64_t>(used.bytes);
    container.log_inodes = static_cast<uint64_t>(used.inodes);
  }
  const std::string volumes = paths_.Volumes(meta.uid());
  auto plugins = ListDir(volumes);
  if (!plugins) return;
  for (const std::string& plugin : *plugins) {
    auto names = ListDir(volumes + "/" + plugin);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (name.find(".deleting~") != std::string::npos) continue;
      const std::string path = volumes + "/" + plugin + "/" + name;
      const std::optional<FsUsage> usage = IsOwn(plugin) ? Volume(path) : OfMount(path);
      if (usage) item.volumes.push_back({name_of_(meta.uid(), path).value_or(VolumeName{name, ""}), *usage});
    }
  }
}

void StatsProvider::CollectAccount(ContainerUsageStats& container) {
  if (container.cgroup.path.empty()) return;
  container.account = cgroups_.Account(container.cgroup.path);
  for (linux::DeviceIo& io : container.account.io) io.device = DeviceName(io.device);
}

void StatsProvider::CollectNode(StatsSnapshot& out, std::stop_token stop) {
  out.interfaces = ReadInterfaces("self");
  out.node_fs = FileSystemOf(paths_.root);
  if (auto systems = images_.ImageFsInfo(stop)) {
    out.image_fs = RuntimesPart(systems->images);
    out.container_fs = RuntimesPart(systems->containers);
  }
  out.max_pids = std::atoll(FirstLine("/proc/sys/kernel/pid_max").c_str());
  const std::string load = FirstLine("/proc/loadavg");
  if (size_t slash = load.find('/'); slash != std::string::npos) {
    out.processes = std::atoll(load.c_str() + slash + 1);
  }
  out.pressure = cgroups_.PressureOfNode();
  out.pods_cgroup = cgroups_.UsageOfAll();
  out.pods_pressure = cgroups_.PressureOfAll();
  if (out.pods_cgroup.cpu_nanos) out.pods_cpu = Cpu("pods", *out.pods_cgroup.cpu_nanos);
}

void StatsProvider::CollectUsage(PodUsageStats& item) {
  const corev1::Pod& pod = *item.pod;
  item.pressure = cgroups_.PressureOf(pod);
  if (pod.spec().host_network()) return;
  if (auto process = cgroups_.AnyProcess(pod)) item.interfaces = ReadInterfaces(std::to_string(*process));
}

// What sandboxes run is nowhere told of but among the images.
std::string StatsProvider::PauseImage(std::stop_token stop) {
  auto images = images_.ListImages(stop);
  if (!images) return "";
  for (const cri::Image& image : *images) {
    for (const std::string& tag : image.repo_tags) {
      if (cri::IsPauseImage(tag)) return tag;
    }
  }
  return "";
}

void StatsProvider::CollectSandbox(PodUsageStats& item, const std::string& image) {
  const auto seen = seen_(item.pod->metadata().uid());
  const cri::SandboxStatus* sandbox = seen ? seen->ReadySandbox() : nullptr;
  if (!sandbox) return;
  item.sandbox_id = sandbox->id;
  item.sandbox_image = image;
  item.sandbox_path = cgroups_.Container(*item.pod, sandbox->id).path;
}

StatsSnapshot StatsProvider::OfMachine() {
  StatsSnapshot out;
  out.time = clock_.Now();
  out.machine = ReadMachineStats();
  out.cpu = Cpu("node", out.machine.cpu_nanos);
  return out;
}

PodUsageStats StatsProvider::OfPod(std::shared_ptr<const corev1::Pod> pod) {
  PodUsageStats out;
  out.cgroup_path = cgroups_.Parent(*pod);
  out.cgroup = cgroups_.Usage(*pod);
  if (out.cgroup.cpu_nanos) out.cpu = Cpu("pod " + pod->metadata().uid(), *out.cgroup.cpu_nanos);
  out.pod = std::move(pod);
  return out;
}

bool StatsProvider::CollectRunning(PodUsageStats& item) {
  const auto seen = seen_(item.pod->metadata().uid());
  if (!seen) return true;
  for (const ContainerRecord& record : seen->containers) {
    if (record.state != cri::ContainerState::kRunning) continue;
    ContainerUsageStats container;
    container.cgroup = cgroups_.Container(*item.pod, record.id);
    const linux::CgroupUsage& used = container.cgroup.usage;
    if (!used.cpu_nanos || !used.memory_working_set_bytes) return false;
    container.id = record.id;
    container.image = record.image;
    container.created_at = record.created_at;
    container.cpu = Cpu("container " + record.id, *used.cpu_nanos);
    container.runtime.id = record.id;
    container.runtime.name = record.name;
    container.runtime.timestamp =
        std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.Now().time_since_epoch()).count();
    container.runtime.memory_working_set_bytes = used.memory_working_set_bytes;
    item.containers.push_back(std::move(container));
  }
  return true;
}

void StatsProvider::ForgetOld() {
  const SteadyTime before = clock_.SteadyNow() - kForget;
  std::erase_if(samples_, [&](const auto& item) { return item.second.at < before; });
  std::erase_if(volumes_, [&](const auto& item) { return item.second.at < before; });
  slow_volumes_.Forget(kForget);
}

Result<StatsSnapshot> StatsProvider::CollectUse(std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    StatsSnapshot out = OfMachine();
    bool all = true;
    for (auto& pod : pods_()) {
      PodUsageStats& item = out.pods.emplace_back(OfPod(std::move(pod)));
      all = all && CollectRunning(item);
    }
    ForgetOld();
    if (all) return out;
  }
  return Collect({}, std::move(stop));
}

Result<StatsSnapshot> StatsProvider::Collect(Parts parts, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<cri::ContainerStats> stats, runtime_.ListContainerStats({}, stop));
  KEELSON_ASSIGN_OR_RETURN(std::vector<cri::Container> containers, runtime_.ListContainers({}, stop));
  std::map<std::string, const cri::Container*> by_id;
  for (const cri::Container& container : containers) by_id[container.id] = &container;
  const std::string pause = parts.accounts ? PauseImage(stop) : "";
  MutexLock lock(mutex_);
  StatsSnapshot out = OfMachine();
  if (parts.usage) CollectNode(out, stop);
  if (parts.accounts) out.disks = ReadDisks();
  std::map<std::string, std::vector<ContainerUsageStats>> by_pod;
  for (cri::ContainerStats& item : stats) {
    ContainerUsageStats container;
    auto known = by_id.find(item.id);
    if (known != by_id.end()) {
      if (known->second->state != cri::ContainerState::kRunning) continue;
      container.image = known->second->image;
      container.created_at = known->second->created_at;
    }
    container.id = item.id;
    if (item.cpu_usage_core_nanos) container.cpu = Cpu("container " + item.id, *item.cpu_usage_core_nanos);
    const std::string uid = LabelOf(item.labels, kPodUidLabel);
    container.runtime = std::move(item);
    by_pod[uid].push_back(std::move(container));
  }
  for (auto& pod : pods_()) {
    PodUsageStats& item = out.pods.emplace_back(OfPod(std::move(pod)));
    item.containers = std::move(by_pod[item.pod->metadata().uid()]);
    for (ContainerUsageStats& container : item.containers) {
      container.cgroup = cgroups_.Container(*item.pod, container.id);
    }
    if (parts.usage) CollectUsage(item);
    if (parts.accounts) {
      CollectSandbox(item, pause);
      for (ContainerUsageStats& container : item.containers) CollectAccount(container);
    }
    if (parts.files) CollectFiles(item);
  }
  ForgetOld();
  return out;
}

}  // namespace keelson::kubelet
