// What building a pod's sandbox and containers needs to know of the node. A value: taken once per sync.
#pragma once

#include <string>
#include <vector>

#include "kubelet/container/paths.h"
#include "lib/k8s/pod_resources.h"

namespace keelson::kubelet {

struct NodeContext {
  Paths paths;
  std::string node_name;
  std::vector<std::string> node_ips;  // the primary one first
  k8s::ResourceList allocatable;
  int64_t memory_capacity = 0;
  std::string cluster_domain;
  std::vector<std::string> cluster_dns;
  std::string resolv_conf;  // path; empty: pods with dnsPolicy Default get an empty configuration
  bool cpu_cfs_quota = true;
  int64_t cpu_cfs_period_us = 100000;
  bool cgroup_v2 = false;
  bool seccomp_default = false;
};

}  // namespace keelson::kubelet
