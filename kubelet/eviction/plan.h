// Which thresholds are crossed, what the node says of it, and which pod goes first. Pure: observations in,
// decisions out.
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

// Which of the node's file systems are apart: the one of images, with the containers' writable layers or,
// `split`, without them.
struct DiskLayout {
  bool images_apart = false, split = false;
};
// Those of containerfs are nobody's to set: they are those of the file system that the containers are on.
std::vector<Threshold> WithContainerFs(std::vector<Threshold> thresholds, const DiskLayout& layout);

// What is remembered from one look to the next.
struct EvictionState {
  std::vector<Threshold> due;                                // called for action at the last look
  std::vector<std::pair<Threshold, SteadyTime>> first_seen;  // since when
  std::map<Pressure, SteadyTime> last_seen;                  // of conditions
  std::set<Pressure> pressures;                              // what the node's conditions say
};

// Brings `state` up to date and returns the thresholds that call for action now: their grace has passed. The
// most urgent first.
std::vector<Threshold> UpdateEviction(const std::vector<Threshold>& thresholds,
                                      const Observations& observations, const EvictionOptions& options,
                                      SteadyTime now, EvictionState& state);
// Whether it is crossed; with `reclaiming`, also while the minimum reclaim is not reached.
bool IsMet(const Threshold& threshold, const Observations& observations, bool reclaiming);

// How much more memory may be used before one of the signal's thresholds is crossed; nullopt: none is left,
// or none is known.
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
// The one to go first comes first: those of which nothing is known, then those that use more than they asked
// for, by priority, by how much more. Processes are not asked for: priority comes first. Of disks counts what
// is on the signal's file system.
void RankCandidates(const std::string& signal, const DiskLayout& layout, std::vector<Candidate>& candidates);

// What frees something on the signal's file system without ending pods.
struct NodeReclaim {
  bool containers = false, images = false;
};
NodeReclaim ReclaimFor(const std::string& signal, const DiskLayout& layout);

// status.message of a pod that is evicted for a threshold.
std::string EvictionMessage(const Threshold& threshold, const Observations& observations,
                            const Candidate& candidate);
bool HasStorageLimit(const corev1::Pod& pod);
struct StorageExcess {
  const char* signal;  // ephemeralpodfs.limit, ...: whose limit it is
  std::string message;
};
// Why a pod goes that uses more local storage than it may; nullopt: it does not.
std::optional<StorageExcess> StorageLimitExceeded(const corev1::Pod& pod, const PodUsage& usage);

}  // namespace keelson::kubelet
