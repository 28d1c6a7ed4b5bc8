// KubeletConfiguration (kubelet.config.k8s.io/v1beta1): every field, with upstream's names and defaults. One table
// (fields.h) drives reading, printing and the flags that set fields.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

using Duration = std::chrono::milliseconds;
using StringMap = std::map<std::string, std::string>;

struct ShutdownPeriod {  // for pods of this priority or higher
  int32_t priority = 0;
  int64_t seconds = 0;
  bool operator==(const ShutdownPeriod&) const = default;
};
struct MemoryReservation {
  int32_t numa_node = 0;
  StringMap limits;
  bool operator==(const MemoryReservation&) const = default;
};
struct NodeTaint {
  std::string key, value, effect;
  bool operator==(const NodeTaint&) const = default;
};

struct KubeletConfig {
  bool enable_server = true;
  std::string static_pod_path;
  std::string pod_logs_dir = "/var/log/pods";
  Duration sync_frequency = std::chrono::minutes(1);
  Duration file_check_frequency = std::chrono::seconds(20), http_check_frequency = std::chrono::seconds(20);
  std::string static_pod_url;
  std::map<std::string, std::vector<std::string>> static_pod_url_header;

  // Server
  std::string address = "0.0.0.0";
  int32_t port = 10250, read_only_port = 0;
  std::string tls_cert_file, tls_private_key_file, tls_min_version;
  std::vector<std::string> tls_cipher_suites;
  bool rotate_certificates = false, server_tls_bootstrap = false;
  std::string client_ca_file;
  bool webhook_authentication = true, anonymous = false;
  Duration webhook_cache_ttl = std::chrono::minutes(2);
  std::string authorization_mode = "Webhook";
  Duration cache_authorized_ttl = std::chrono::minutes(5), cache_unauthorized_ttl = std::chrono::seconds(30);
  int32_t healthz_port = 10248;  // 0: none
  std::string healthz_address = "127.0.0.1";
  Duration streaming_connection_idle_timeout = std::chrono::hours(4);
  bool enable_debugging_handlers = true, enable_contention_profiling = false;
  bool enable_profiling_handler = true, enable_debug_flags_handler = true;
  bool enable_system_log_handler = true, enable_system_log_query = false;
  std::string show_hidden_metrics_for_version;

  // Images
  int32_t registry_pull_qps = 5, registry_burst = 10;
  std::string image_pull_credentials_verification_policy = "NeverVerifyPreloadedImages";
  std::vector<std::string> preloaded_images_verification_allowlist;
  bool serialize_image_pulls = true;
  int32_t max_parallel_image_pulls = 0;  // 0: not set
  Duration image_minimum_gc_age = std::chrono::minutes(2), image_maximum_gc_age{0};
  int32_t image_gc_high_threshold_percent = 85, image_gc_low_threshold_percent = 80;

  // Node
  int32_t event_record_qps = 50, event_burst = 100;
  int32_t kube_api_qps = 50, kube_api_burst = 100;
  std::string content_type = "application/vnd.kubernetes.protobuf";
  Duration node_status_update_frequency = std::chrono::seconds(10);
  Duration node_status_report_frequency = std::chrono::minutes(5);
  int32_t node_lease_duration_seconds = 40, node_status_max_images = 50;
  bool register_node = true;
  std::vector<NodeTaint> register_with_taints;
  std::string provider_id;
  int32_t max_pods = 110, pods_per_core = 0;
  int64_t max_open_files = 1000000;
  int32_t oom_score_adj = -999;
  bool run_once = false, fail_swap_on = true, fail_cgroup_v1 = false, protect_kernel_defaults = false;
  Duration shutdown_grace_period{0}, shutdown_grace_period_critical_pods{0};
  std::vector<ShutdownPeriod> shutdown_grace_period_by_pod_priority;

  // Pods
  std::string cluster_domain, resolv_conf = "/etc/resolv.conf", pod_cidr;
  std::vector<std::string> cluster_dns;
  std::string hairpin_mode = "promiscuous-bridge";
  bool make_iptables_util_chains = true;
  int32_t iptables_masquerade_bit = 14, iptables_drop_bit = 15;
  std::vector<std::string> allowed_unsafe_sysctls;
  bool seccomp_default = false;
  Duration max_container_restart_period = std::chrono::minutes(5);  // crashLoopBackOff
  std::string config_map_and_secret_change_detection_strategy = "Watch";
  bool enable_controller_attach_detach = true;
  std::string volume_plugin_dir = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/";
  Duration volume_stats_agg_period = std::chrono::minutes(1);
  bool local_storage_capacity_isolation = true;
  std::string container_log_max_size = "10Mi";
  int32_t container_log_max_files = 5, container_log_max_workers = 1;
  Duration container_log_monitor_interval = std::chrono::seconds(10);
  int64_t user_namespaces_ids_per_pod = 65536;
  std::string container_runtime_endpoint = "unix:///run/containerd/containerd.sock", image_service_endpoint;
  Duration runtime_request_timeout = std::chrono::minutes(2);

  // Resources
  std::string kubelet_cgroups, system_cgroups, cgroup_root, cgroup_driver = "cgroupfs";
  bool cgroups_per_qos = true, single_process_oom_kill = false;
  int64_t pod_pids_limit = -1;
  bool cpu_cfs_quota = true;
  Duration cpu_cfs_quota_period = std::chrono::milliseconds(100);
  std::string cpu_manager_policy = "none", memory_manager_policy = "None";
  std::string topology_manager_policy = "none", topology_manager_scope = "container";
  StringMap cpu_manager_policy_options, topology_manager_policy_options, qos_reserved;
  Duration cpu_manager_reconcile_period = std::chrono::seconds(10);
  std::vector<MemoryReservation> reserved_memory;
  double memory_throttling_factor = 0.9;
  std::string memory_reservation_policy = "None", swap_behavior;
  StringMap system_reserved, kube_reserved;
  std::string reserved_system_cpus, system_reserved_cgroup, kube_reserved_cgroup;
  std::vector<std::string> enforce_node_allocatable = {"pods"};

  // Eviction
  StringMap eviction_hard = DefaultEvictionHard(), eviction_soft, eviction_soft_grace_period,
            eviction_minimum_reclaim;
  Duration eviction_pressure_transition_period = std::chrono::minutes(5);
  int32_t eviction_max_pod_grace_period = 0;
  bool merge_default_eviction_settings = false, kernel_memcg_notification = false;

  std::map<std::string, bool> feature_gates;
  std::string logging_format = "text";
  Duration logging_flush_frequency = std::chrono::seconds(5);
  int32_t logging_verbosity = 0;
  std::string tracing_endpoint;
  int32_t tracing_sampling_rate_per_million = 0;

  static StringMap DefaultEvictionHard() {
    return {{"memory.available", "100Mi"},
            {"nodefs.available", "10%"},
            {"nodefs.inodesFree", "5%"},
            {"imagefs.available", "15%"},
            {"imagefs.inodesFree", "5%"}};
  }
};

// kBadRequest, with the place of the mistake. Unknown fields are logged and ignored, as upstream does.
Result<KubeletConfig> ParseKubeletConfig(const std::string& yaml);
// Reads `main_file`, then merges the *.conf files of `directory` into it in the order of their names. Both may be
// empty. Errors as ParseKubeletConfig.
Result<KubeletConfig> LoadKubeletConfig(const std::string& main_file, const std::string& directory);
// The whole configuration, as /configz shows it: {"kubeletconfig": {...}}.
std::string ConfigzJson(const KubeletConfig& config);
// An error that lists every broken rule, with upstream's messages.
Result<> ValidateKubeletConfig(const KubeletConfig& config);

}  // namespace keelson::kubelet
