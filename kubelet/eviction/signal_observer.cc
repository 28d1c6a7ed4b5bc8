#include "kubelet/eviction/signal_observer.h"

#include "kubelet/container/labels.h"
#include "kubelet/node/machine.h"
#include "kubelet/stats/directory_usage.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

constexpr char kEmptyDir[] = "kubernetes.io/empty-dir";

Result<FileSystemLoad> ObserveDisk(const std::string& name, const std::string& path, Observations& out) {
  auto disk = ReadFileSystem(path);
  if (!disk) return disk;
  out[name + ".available"] = {disk->available, disk->capacity};
  if (disk->inodes > 0) out[name + ".inodesFree"] = {disk->inodes_free, disk->inodes};
  return disk;
}

}  // namespace

Observations SignalObserver::Observe(std::stop_token stop) {
  Observations out;
  const MachineLoad load = ReadMachineLoad();
  out["memory.available"] = {load.memory_available, memory_capacity_};
  if (auto used = cgroups_.UsageOfAll().memory_working_set_bytes) {
    out["allocatableMemory.available"] = {pods_memory_ - static_cast<int64_t>(*used), pods_memory_};
  }
  if (max_pids_ > 0) out["pid.available"] = {max_pids_ - load.processes, max_pids_};
  (void)ObserveDisk("nodefs", paths_.root, out);
  if (auto systems = images_.ImageFsInfo(stop); systems && !systems->images.empty()) {
    const auto node = ReadFileSystem(paths_.root);
    const auto images = ObserveDisk("imagefs", systems->images.front().mountpoint, out);
    const auto containers = ObserveDisk("containerfs", systems->containers.front().mountpoint, out);
    if (node && images && containers) {
      layout_ = {images->id != node->id, images->id != node->id && containers->id == node->id};
    }
  }
  return out;
}

PodUsage SignalObserver::Usage(const corev1::Pod& pod) {
  PodUsage out;
  const std::string& uid = pod.metadata().uid();
  const linux::CgroupUsage group = cgroups_.Usage(pod);
  out.memory = static_cast<int64_t>(group.memory_working_set_bytes.value_or(0));
  out.processes = static_cast<int64_t>(group.processes.value_or(0));
  cri::Filter filter;
  filter.labels[kPodUidLabel] = uid;
  const std::string logs = paths_.PodLogs(pod.metadata().namespace_(), pod.metadata().name(), uid);
  if (auto stats = runtime_.ListContainerStats(filter)) {
    for (const cri::ContainerStats& item : *stats) {
      ContainerUsage& container = out.containers.emplace_back();
      const DirectoryUsage log = UsageOfDirectory(logs + "/" + item.name);
      container.name = item.name;
      container.memory = static_cast<int64_t>(item.memory_working_set_bytes.value_or(0));
      container.disk = static_cast<int64_t>(item.writable_layer_bytes.value_or(0)) + log.bytes;
      container.inodes = log.inodes;
      out.writable += static_cast<int64_t>(item.writable_layer_bytes.value_or(0));
      out.disk += container.disk;
      out.inodes += container.inodes;
    }
  }
  out.known = group.memory_working_set_bytes || !out.containers.empty();
  for (const auto& volume : pod.spec().volumes()) {
    const auto& source = volume.volume_source();
    if (!source.has_empty_dir() || !source.empty_dir().medium().empty()) {
      continue;  // memory has its own limit
    }
    const DirectoryUsage used = UsageOfDirectory(paths_.Volume(uid, kEmptyDir, volume.name()));
    out.empty_dirs[volume.name()] = used.bytes;
    out.disk += used.bytes;
    out.inodes += used.inodes;
  }
  return out;
}

}  // namespace keelson::kubelet
