// Facts about the machine, for the Node object.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

struct Machine {
  int cpus = 1;
  int64_t memory_bytes = 0;
  int64_t ephemeral_bytes = 0;  // of the file system that holds the root directory
  int64_t max_pids = 0, swap_bytes = 0;
  bool limits_swap = false;                   // the kernel's cgroups can limit swap
  std::map<std::string, int64_t> huge_pages;  // 2Mi -> bytes set aside for pages of that size
  std::string machine_id, system_uuid, boot_id, kernel_version, os_image, architecture;
};
Machine ReadMachine(const std::string& root_dir);
// Current usage of a file system.
struct FileSystemLoad {
  int64_t capacity = 0, available = 0, inodes = 0, inodes_free = 0;
  uint64_t id = 0;  // the same for paths on one file system
};
Result<FileSystemLoad> ReadFileSystem(const std::string& path);
struct MachineLoad {
  int64_t memory_available = 0;  // without reclaiming pages in use
  int64_t processes = 0;
};
MachineLoad ReadMachineLoad();

std::string HostName();  // lower case
// The source address of the default route; empty: none. Connects a UDP socket, sends nothing.
std::string DefaultAddress(bool v6 = false);

struct Reservations {
  std::map<std::string, std::string> system, kube, eviction_hard;
  int max_pods = 110;
  bool local_storage = true;  // localStorageCapacityIsolation: ephemeral-storage is a resource
};
// The node's capacity and allocatable resources.
k8s::ResourceList CapacityOf(const Machine& machine, const Reservations& reservations);
k8s::ResourceList AllocatableOf(const Machine& machine, const Reservations& reservations);
// "100Mi", or "10%" of `whole`; 0: the signal has no threshold.
int64_t ThresholdOf(const std::map<std::string, std::string>& thresholds, const std::string& signal,
                    int64_t whole);

}  // namespace keelson::kubelet
