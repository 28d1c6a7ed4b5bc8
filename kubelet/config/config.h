// Settings of the kubelet: KubeletConfiguration (kubelet.config.k8s.io/v1beta1) and flags, under upstream's
// names and with upstream's defaults.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

// The file. Durations are Go's ("1m30s") there.
struct KubeletConfig {
  std::string address = "0.0.0.0";
  uint16_t port = 10250;
  std::string healthz_address = "127.0.0.1";
  uint16_t healthz_port = 10248;  // 0: none
  std::string tls_cert_file, tls_private_key_file;
  std::string client_ca_file;  // authentication.x509.clientCAFile
  bool anonymous = false, webhook_authentication = true;
  bool webhook_authorization = true;  // authorization.mode: Webhook
  std::vector<std::string> cluster_dns;
  std::string cluster_domain;
  std::string cgroup_root, cgroup_driver = "cgroupfs";
  bool cgroups_per_qos = true;
  std::string pod_logs_dir = "/var/log/pods";
  std::string resolv_conf = "/etc/resolv.conf";
  std::string pod_cidr;
  std::string static_pod_path;
  std::string container_runtime_endpoint, image_service_endpoint;
  int max_pods = 110;
  int64_t pod_pids_limit = -1;
  bool serialize_image_pulls = true;
  int max_parallel_image_pulls = 0;
  bool cpu_cfs_quota = true;
  std::chrono::milliseconds cpu_cfs_quota_period{100};
  bool seccomp_default = false;
  bool register_node = true;
  std::chrono::milliseconds sync_frequency{std::chrono::minutes(1)};
  std::chrono::milliseconds node_status_update_frequency{std::chrono::seconds(10)};
  std::chrono::milliseconds node_status_report_frequency{std::chrono::minutes(5)};
  int node_lease_duration_seconds = 40;
  std::chrono::milliseconds runtime_request_timeout{std::chrono::minutes(2)};
  std::chrono::milliseconds max_container_restart_period{std::chrono::minutes(5)};  // crashLoopBackOff
  std::map<std::string, std::string> eviction_hard = {
      {"memory.available", "100Mi"}, {"nodefs.available", "10%"}, {"imagefs.available", "15%"}};
  std::map<std::string, std::string> system_reserved, kube_reserved;
};

struct KubeletFlags {
  std::string kubeconfig, config;
  std::string hostname_override, node_ip;
  std::string container_runtime_endpoint;
  std::string root_dir = "/var/lib/kubelet", cert_dir;
  std::string pod_manifest_path;
  std::string node_labels;           // a=b,c=d
  std::string register_with_taints;  // key=value:effect,...
  int verbosity = 0;
};

struct Settings {
  KubeletConfig config;
  KubeletFlags flags;
};

// kBadRequest with the place of the mistake. Fields that this kubelet has no use for are accepted.
Result<KubeletConfig> ParseKubeletConfig(const std::string& yaml);
// Of the command line; `--config` is read. `exit_code` is set when all has been said already: --help,
// --version and mistakes in flags.
Result<Settings> LoadSettings(int argc, char** argv, std::optional<int>& exit_code);

// "1h30m", "10s", "250ms".
Result<std::chrono::milliseconds> ParseDuration(const std::string& text);

}  // namespace keelson::kubelet
