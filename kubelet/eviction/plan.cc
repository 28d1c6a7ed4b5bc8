#include "kubelet/eviction/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

// As upstream prints quantities of bytes and of things.
std::string Quantity(const std::string& resource, int64_t value) {
  if (resource == "inodes" || resource == "pids") return std::to_string(value);
  if (value % 1024 != 0) return std::to_string(value);
  static const char* const kUnits[] = {"Ki", "Mi", "Gi", "Ti"};
  int unit = -1;
  while (unit < 3 && value % 1024 == 0 && value != 0) {
    value /= 1024;
    ++unit;
  }
  return std::to_string(value) + (unit < 0 ? "" : kUnits[unit]);
}

bool Contains(const std::vector<Threshold>& list, const Threshold& threshold) {
  return std::find(list.begin(), list.end(), threshold) != list.end();
}

enum class Disk { kNode, kImages, kContainers };
Disk DiskOf(const std::string& signal) {
  if (signal.compare(0, 7, "imagefs") == 0) return Disk::kImages;
  return signal.compare(0, 11, "containerfs") == 0 ? Disk::kContainers : Disk::kNode;
}

// Logs and volumes are always on the node's own disk.
int64_t UsageOf(const std::string& signal, const DiskLayout& layout, const PodUsage& usage) {
  const std::string resource = ResourceOfSignal(signal);
  if (resource == "memory") return usage.memory;
  if (resource == "pids") return usage.processes;
  const Disk disk = DiskOf(signal);
  const bool inodes = resource == "inodes";  // those of writable layers are not known
  if (!layout.images_apart || (layout.split && disk != Disk::kImages)) {
    return inodes ? usage.inodes : usage.disk;
  }
  if (disk == Disk::kNode) return inodes ? usage.inodes : usage.disk - usage.writable;
  return layout.split || inodes ? 0 : usage.writable;
}

int64_t RequestOf(const std::string& resource, const corev1::Pod& pod) {
  if (resource != "memory" && resource != "ephemeral-storage") return 0;
  return k8s::AmountOf(k8s::PodRequests(pod), resource).Value();
}

int Urgency(const Threshold& threshold) {
  // Memory runs out fastest, and a pod that goes frees it at once.
  if (threshold.signal == "memory.available") return 0;
  if (threshold.signal == "allocatableMemory.available") return 1;
  return 2;
}

}  // namespace

bool IsMet(const Threshold& threshold, const Observations& observations, bool reclaiming) {
  auto it = observations.find(threshold.signal);
  if (it == observations.end()) return false;
  int64_t limit = threshold.value.Of(it->second.capacity);
  if (reclaiming && threshold.min_reclaim) limit += threshold.min_reclaim->Of(it->second.capacity);
  return it->second.available < limit;
}

std::vector<Threshold> UpdateEviction(const std::vector<Threshold>& thresholds,
                                      const Observations& observations, const EvictionOptions& options,
                                      SteadyTime now, EvictionState& state) {
  std::vector<Threshold> met;
  for (const Threshold& threshold : thresholds) {
    if (IsMet(threshold, observations, Contains(state.due, threshold))) met.push_back(threshold);
  }
  std::vector<std::pair<Threshold, SteadyTime>> seen;
  for (const Threshold& threshold : met) {
    auto before = std::find_if(state.first_seen.begin(), state.first_seen.end(),
                               [&](const auto& item) { return item.first == threshold; });
    seen.emplace_back(threshold, before == state.first_seen.end() ? now : before->second);
    if (auto pressure = PressureOf(threshold.signal)) state.last_seen[*pressure] = now;
  }
  state.pressures.clear();
  for (const auto& [pressure, when] : state.last_seen) {
    if (when == now || now - when < options.pressure_transition_period) state.pressures.insert(pressure);
  }
  std::vector<Threshold> due;
  for (const auto& [threshold, since] : seen) {
    if (now - since >= threshold.grace) due.push_back(threshold);
  }
  state.first_seen = std::move(seen);
  state.due = due;
  std::stable_sort(due.begin(), due.end(),
                   [](const Threshold& a, const Threshold& b) { return Urgency(a) < Urgency(b); });
  return due;
}

std::optional<int64_t> MemoryLeft(const std::vector<Threshold>& thresholds, const Observations& observations,
                                  const std::string& signal) {
  std::optional<int64_t> out;
  const auto it = observations.find(signal);
  for (const Threshold& threshold : thresholds) {
    if (threshold.signal != signal || it == observations.end()) continue;
    const int64_t left = it->second.available - threshold.value.Of(it->second.capacity);
    if (left > 0 && (!out || left < *out)) out = left;
  }
  return out;
}

std::vector<Threshold> WithContainerFs(std::vector<Threshold> thresholds, const DiskLayout& layout) {
  std::erase_if(thresholds, [](const Threshold& item) { return DiskOf(item.signal) == Disk::kContainers; });
  const std::string source = layout.images_apart && !layout.split ? "imagefs" : "nodefs";
  std::vector<Threshold> out = thresholds;
  for (Threshold& threshold : thresholds) {
    if (threshold.signal.compare(0, source.size() + 1, source + ".") != 0) continue;
    threshold.signal.replace(0, source.size(), "containerfs");
    out.push_back(std::move(threshold));
  }
  return out;
}

NodeReclaim ReclaimFor(const std::string& signal, const DiskLayout& layout) {
  if (PressureOf(signal) != Pressure::kDisk) return {};
  const Disk disk = DiskOf(signal);
  if (!layout.images_apart) return {true, true};
  if (layout.split) return {disk != Disk::kImages, disk == Disk::kImages};
  return {disk != Disk::kNode, disk != Disk::kNode};
}

void RankCandidates(const std::string& signal, const DiskLayout& layout, std::vector<Candidate>& candidates) {
  const std::string resource = ResourceOfSignal(signal);
  const bool requested = resource != "pids";
  auto key = [&](const Candidate& candidate) {
    const int64_t usage = UsageOf(signal, layout, candidate.usage);
    const int64_t over = usage - RequestOf(resource, *candidate.pod);
    const bool known = candidate.usage.known, modest = requested && known && over <= 0;
    return std::make_tuple(requested && known, modest, k8s::Priority(candidate.pod->spec()), known, -over);
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
}

std::string EvictionMessage(const Threshold& threshold, const Observations& observations,
                            const Candidate& candidate) {
  const std::string resource = ResourceOfSignal(threshold.signal);
  std::string out = fmt::format("The node was low on resource: {}. ", resource);
  if (auto it = observations.find(threshold.signal); it != observations.end()) {
    const bool percent = threshold.value.percent > 0;
    out += fmt::format(
        "Threshold quantity: {}, available: {}. ",
        percent ? Quantity(resource, threshold.value.Of(it->second.capacity)) : threshold.value.text,
        resource == "inodes" || resource == "pids" ? std::to_string(it->second.available)
                                                   : fmt::format("{}Ki", it->second.available / 1024));
  }
  for (const ContainerUsage& container : candidate.usage.containers) {
    const corev1::Container* spec = k8s::FindContainer(candidate.pod->spec(), container.name);
    if (!spec || (resource != "memory" && resource != "ephemeral-storage")) continue;
    const int64_t used = resource == "memory" ? container.memory : container.disk;
    const int64_t asked = k8s::AmountOf(k8s::ToResourceList(spec->resources().requests()), resource).Value();
    if (used <= asked) continue;
    out += fmt::format("Container {} was using {}Ki, request is {}, has larger consumption of {}. ",
                       container.name, used / 1024, Quantity(resource, asked), resource);
  }
  return out;
}

bool HasStorageLimit(const corev1::Pod& pod) {
  for (const auto& volume : pod.spec().volumes()) {
    if (volume.volume_source().has_empty_dir() && volume.volume_source().empty_dir().has_size_limit()) {
      return true;
    }
  }
  bool limited = false;
  k8s::ForEachContainer(pod.spec(), [&](const corev1::Container& container) {
    limited = limited || container.resources().limits().count("ephemeral-storage");
  });
  return limited;
}

std::optional<StorageExcess> StorageLimitExceeded(const corev1::Pod& pod, const PodUsage& usage) {
  for (const auto& volume : pod.spec().volumes()) {
    const auto& source = volume.volume_source();
    if (!source.has_empty_dir() || !source.empty_dir().has_size_limit()) continue;
    auto used = usage.empty_dirs.find(volume.name());
    const int64_t limit = api::Amount::Of(source.empty_dir().size_limit()).Value();
    if (limit > 0 && used != usage.empty_dirs.end() && used->second > limit) {
      return StorageExcess{"emptydirfs.limit",
                           fmt::format("Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ",
                                       volume.name(), source.empty_dir().size_limit().string())};
    }
  }
  const int64_t pod_limit = k8s::AmountOf(k8s::PodLimits(pod), "ephemeral-storage").Value();
  if (pod_limit > 0 && usage.disk > pod_limit) {
    return StorageExcess{
        "ephemeralpodfs.limit",
        fmt::format("Pod ephemeral local storage usage exceeds the total limit of containers {}. ",
                    Quantity("ephemeral-storage", pod_limit))};
  }
  for (const ContainerUsage& container : usage.containers) {
    const corev1::Container* spec = k8s::FindContainer(pod.spec(), container.name);
    if (!spec) continue;
    auto limit = spec->resources().limits().find("ephemeral-storage");
    if (limit == spec->resources().limits().end()) continue;
    if (container.disk > api::Amount::Of(limit->second).Value()) {
      return StorageExcess{"ephemeralcontainerfs.limit",
                           fmt::format("Container {} exceeded its local ephemeral storage limit \"{}\". ",
                                       container.name, limit->second.string())};
    }
  }
  return std::nullopt;
}

}  // namespace keelson::kubelet
