#include "kubelet/stats/provider.h"

#include <algorithm>

#include "kubelet/container/labels.h"
#include "kubelet/stats/directory_usage.h"
#include "lib/base/file.h"

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
  const FsUsage usage = VolumeAt(path);
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
  if (size_t slash = load.find('/'); slash != std::string::npos)
    out.processes = std::atoll(load.c_str() + slash + 1);
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

Result<StatsSnapshot> StatsProvider::Collect(Parts parts, std::stop_token stop) {
  ASSIGN_OR_RETURN(std::vector<cri::ContainerStats> stats, runtime_.ListContainerStats({}, stop));
  ASSIGN_OR_RETURN(std::vector<cri::Container> containers, runtime_.ListContainers({}, stop));
  std::map<std::string, const cri::Container*> by_id;
  for (const cri::Container& container : containers) by_id[container.id] = &container;
  MutexLock lock(mutex_);
  StatsSnapshot out;
  out.time = clock_.Now();
  out.machine = ReadMachineStats();
  out.cpu = Cpu("node", out.machine.cpu_nanos);
  if (parts.usage) CollectNode(out, stop);
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
  for (const auto& pod : pods_()) {
    PodUsageStats& item = out.pods.emplace_back();
    const std::string& uid = pod->metadata().uid();
    item.pod = pod;
    item.cgroup_path = cgroups_.Parent(*pod);
    item.cgroup = cgroups_.Usage(*pod);
    if (item.cgroup.cpu_nanos) item.cpu = Cpu("pod " + uid, *item.cgroup.cpu_nanos);
    item.containers = std::move(by_pod[uid]);
    for (ContainerUsageStats& container : item.containers)
      container.cgroup = cgroups_.Container(*pod, container.id);
    if (parts.usage) CollectUsage(item);
    if (parts.accounts)
      for (ContainerUsageStats& container : item.containers) CollectAccount(container);
    if (parts.files) CollectFiles(item);
  }
  std::erase_if(samples_, [&](const auto& item) { return clock_.SteadyNow() - item.second.at > kForget; });
  slow_volumes_.Forget(kForget);
  std::erase_if(volumes_, [&](const auto& item) { return clock_.SteadyNow() - item.second.at > kForget; });
  return out;
}

}  // namespace keelson::kubelet
