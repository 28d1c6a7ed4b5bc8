// What building sandboxes and containers needs to know about the node. A value, taken once per sync.
#pragma once

#include <string>
#include <vector>

#include "kubelet/container/paths.h"
#include "kubelet/cri/types.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

struct NodeContext {
  Paths paths;
  std::string node_name;
  std::vector<std::string> node_ips;  // the primary one first
  k8s::ResourceList allocatable;
  int64_t memory_capacity = 0, swap_capacity = 0;
  std::vector<std::string> huge_page_sizes;  // as the kernel spells them: 2MB, 1GB
  std::string cluster_domain;
  std::vector<std::string> cluster_dns;
  std::string resolv_conf;  // path; empty: pods with dnsPolicy Default get an empty configuration
  bool cpu_cfs_quota = true;
  int64_t cpu_cfs_period_us = 100000;
  bool cgroup_v2 = false;
  bool exclusive_cpus = false;           // CPU manager policy static
  bool single_process_oom_kill = false;  // false: the OOM killer kills all processes of a container
  bool limits_swap = false;              // the kernel can limit swap
  bool limited_swap = false;             // memorySwap.swapBehavior: LimitedSwap
  struct MemoryQos {                     // feature gate MemoryQoS, cgroup v2
    bool on = false;
    bool tiered = false;      // memoryReservationPolicy: TieredReservation
    double throttling = 0.9;  // memoryThrottlingFactor
  } memory_qos;
  bool stop_signals = false;  // feature gate ContainerStopSignals
  bool seccomp_default = false;
  bool apparmor = false;  // the kernel enforces AppArmor profiles
  // What the runtime supports, as of its last answer.
  std::vector<cri::RuntimeHandler> handlers;
  bool supplemental_groups_policy = false;

  // Null: the runtime has no such handler.
  const cri::RuntimeHandler* Handler(const std::string& name) const {
    for (const auto& handler : handlers) {
      if (handler.name == name) return &handler;
    }
    return nullptr;
  }
  bool RecursiveReadOnly(const std::string& handler) const {
    const cri::RuntimeHandler* found = Handler(handler);
    return found && found->recursive_read_only_mounts;
  }
};

}  // namespace keelson::kubelet
