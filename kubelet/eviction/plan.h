// Decides which thresholds are met, which conditions the node has, and which pods are evicted first. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/eviction/thresholds.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

struct Observation {
  int64_t available = 0, capacity = 0;
};
using Observations = std::map<std::string, Observation>;  // by signal

// Which file systems are separate from nodefs: `images_apart`: imagefs, with the containers' writable layers, or
// (`split`) without them.
struct DiskLayout {
  bool images_apart = false, split = false;
};
// Adds the thresholds of containerfs, which cannot be configured: those of the file system that containers are on.
std::vector<Threshold> WithContainerFs(std::vector<Threshold> thresholds, const DiskLayout& layout);

// State between passes.
struct EvictionState {
  std::vector<Threshold> due;                                // met at the last pass
  std::vector<std::pair<Threshold, SteadyTime>> first_seen;  // met since
  std::map<Pressure, SteadyTime> last_seen;                  // when the condition was last met
  std::set<Pressure> pressures;                              // the node's conditions
};

// Updates `state`, and returns the thresholds that are met for longer than their grace period, the most urgent first.
std::vector<Threshold> UpdateEviction(const std::vector<Threshold>& thresholds,
                                      const Observations& observations, const EvictionOptions& options,
                                      SteadyTime now, EvictionState& state);
// Whether the threshold is met; with `reclaiming`, also while its minimum reclaim is not reached.
bool IsMet(const Threshold& threshold, const Observations& observations, bool reclaiming);

// How much more memory may be used before one of the signal's thresholds is crossed; nullopt: none is
// left, or the signal is unknown.
std::optional<int64_t> MemoryLeft(const std::vector<Threshold>& thresholds, const Observations& observations,
                                  const std::string& signal);

struct ContainerUsage {
  std::string name;
  int64_t memory = 0, disk = 0, inodes = 0;  // disk: writable layer and logs
};
struct PodUsage {
  bool known = true;  // false: there are no statistics of the pod
  int64_t memory = 0, disk = 0, inodes = 0, processes = 0;
  int64_t writable = 0;  // of `disk`: layers of containers
  std::vector<ContainerUsage> containers;
  std::map<std::string, int64_t> empty_dirs;  // volume -> bytes on disk
};

struct Candidate {
  const corev1::Pod* pod = nullptr;
  PodUsage usage;
};
// Sorts by eviction order: pods without statistics, then pods that exceed their requests, by priority, by how much.
// Processes have no requests: priority comes first. For disks only usage on the signal's file system counts.
void RankCandidates(const std::string& signal, const DiskLayout& layout, std::vector<Candidate>& candidates);

// Node-level reclaim: what frees space on the signal's file system without evicting pods.
struct NodeReclaim {
  bool containers = false, images = false;
};
NodeReclaim ReclaimFor(const std::string& signal, const DiskLayout& layout);

// status.message of the evicted pod.
std::string EvictionMessage(const Threshold& threshold, const Observations& observations,
                            const Candidate& candidate);
// Whether the pod has any limit of ephemeral storage or of an emptyDir.
bool HasStorageLimit(const corev1::Pod& pod);
struct StorageExcess {
  const char* signal;  // ephemeralpodfs.limit, ...
  std::string message;
};
// Which limit of local storage the pod exceeds; nullopt: none.
std::optional<StorageExcess> StorageLimitExceeded(const corev1::Pod& pod, const PodUsage& usage);

}  // namespace keelson::kubelet
