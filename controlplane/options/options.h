// The command line options of kube-controlplane; flags have upstream's names.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/common/options.h"
#include "controlplane/options/auth_flags.h"
#include "controlplane/options/flags_without_effect.h"
#include "controlplane/options/leader_flags.h"
#include "controlplane/options/signing_flags.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::controlplane {

// --audit-log-batch-* and --audit-webhook-batch-*.
struct AuditBatchOptions {
  std::string mode;  // batch, blocking, blocking-strict
  int buffer_size = 10000, max_size = 1, throttle_burst = 15;
  std::string max_wait = "0s";
  bool throttle = true;
  double throttle_qps = 10;
  bool truncate = false;
  int truncate_max_event = 102400, truncate_max_batch = 10485760;  // bytes
  std::string version = "audit.k8s.io/v1";
};

struct AuditOptions {
  std::string policy_file, log_path, webhook_config_file;
  std::string log_format = "json", webhook_initial_backoff = "10s";
  int log_max_age_days = 366, log_max_backups = 100, log_max_megabytes = 100;
  bool log_compress = false;
  AuditBatchOptions log_batch{"blocking", 10000, 1, 15, "0s", false, 0};
  AuditBatchOptions webhook_batch{"batch", 10000, 400, 15, "30s", true, 10};
};

struct Options {
  std::vector<std::string> roles = {"apiserver", "scheduler", "controllers"};
  int verbosity = 0;
  std::vector<std::string> disabled_metrics;

  std::vector<std::string> etcd_servers;    // empty: a child process with data in data_dir
  std::vector<std::string> etcd_overrides;  // "group/resource#servers": refused, see services.cc
  std::string etcd_ca_file, etcd_certificate_file, etcd_key_file;
  std::string etcd_binary = "etcd";
  // An own etcd that others can join: it listens at this address. Empty: on the loopback interface alone.
  std::string etcd_address, etcd_name = "default";
  std::string etcd_initial_cluster;  // NAME=PEER-URL,... of the cluster that it joins; empty: a new one
  std::string etcd_initial_cluster_state = "existing";  // new: the members of that cluster begin it together
  std::string etcd_pki_dir;                             // with ca, server and peer
  std::string data_dir = "/var/lib/keelson/controlplane";
  std::string storage_backend, etcd_prefix = "/registry";
  std::string storage_media_type = "application/vnd.kubernetes.protobuf";
  std::chrono::milliseconds compaction_interval{300000}, event_ttl{3600000};
  std::string encryption_config_file;  // empty: no encryption at rest
  bool reload_encryption_config = false;

  std::string bind_address = "0.0.0.0";
  int secure_port = 6443;
  std::string advertise_address;  // empty: bind_address, or the address of the default route
  std::string tls_certificate_file, tls_key_file, client_ca_file, token_auth_file;
  std::string tls_min_version;
  std::vector<std::string> tls_cipher_suites, tls_curves, tls_sni_certificates;
  bool disable_http2 = false, permit_port_sharing = false;
  int http2_max_streams = 0;  // 0: the default
  double goaway_chance = 0;
  std::vector<std::string> cors_allowed_origins, transport_security_directives;
  AuthFlags auth;

  AuditOptions audit;
  std::chrono::milliseconds request_timeout{60000}, shutdown_delay{0};
  int min_request_timeout_seconds = 1800;
  std::vector<std::string> runtime_config;  // "group/version=true"
  bool allow_privileged = false;
  std::string external_hostname, endpoint_reconciler = "lease";
  std::vector<std::string> flags;  // "name=value" of all flags, for /flagz
  std::string logging_format = "text";
  std::vector<const component::FlagWithoutEffect*> without_effect;  // those that were given
  k8s::FeatureGates feature_gates;
  bool priority_and_fairness = true, profiling = true;
  int max_requests_inflight = 400, max_mutating_requests_inflight = 200;
  bool enable_aggregator_routing = true;
  std::chrono::milliseconds metric_resolution{15000};

  std::vector<std::string> service_account_issuers = {"https://kubernetes.default.svc.cluster.local"};
  std::vector<std::string> service_account_key_files, api_audiences;
  std::string service_account_signing_key_file;
  std::string service_cluster_ip_range = "10.96.0.0/12";  // one or two, comma-separated
  std::string service_node_port_range = "30000-32767";
  int kubernetes_service_node_port = 0;  // of the Service kubernetes; 0: none, its type is ClusterIP

  std::vector<std::string> enable_admission_plugins, disable_admission_plugins;
  std::string admission_control_config_file;
  int default_not_ready_toleration_seconds = 300, default_unreachable_toleration_seconds = 300;

  std::string kubelet_certificate_file, kubelet_key_file, kubelet_ca_file;
  std::vector<std::string> kubelet_address_types = {"InternalIP", "ExternalIP", "Hostname"};
  std::chrono::milliseconds kubelet_timeout{5000};
  std::string proxy_certificate_file, proxy_key_file;  // client certificate for extension API servers
  std::string peer_ca_file;  // empty: requests are not passed on to other API servers
  std::string peer_advertise_ip, peer_advertise_port;  // empty: as advertised to clients
  bool reject_extension_redirects = true;
  std::string root_ca_file;           // published to every namespace; empty: client_ca_file
  std::string kubeconfig;             // for roles without an API server in the process
  std::string master;                 // overrides the server in kubeconfig
  std::string scheduler_config_file;  // KubeSchedulerConfiguration; empty: defaults
  std::string write_config_to;        // write the configuration to this file, and exit
  std::chrono::milliseconds max_unschedulable{300000};
  int scheduler_debug_port = 0;  // on 127.0.0.1; 0: none
  LeaderFlags leader;
  // Endpoints of roles without an API server in the process. Empty: as kubeconfig.
  std::string authentication_kubeconfig, authorization_kubeconfig;
  // Whether CAs that no flag names are looked up in the cluster, if authentication_kubeconfig is there, and whether the
  // process starts without them. No value: a scheduler does, controllers do not.
  bool authentication_skip_lookup = false;
  std::optional<bool> authentication_tolerate_lookup_failure;
  std::vector<std::string> authorization_always_allow_paths = {"/healthz", "/readyz", "/livez"};

  std::vector<std::string> controllers = {"*"};
  bool use_service_account_credentials = false, enable_garbage_collector = true;
  std::string service_account_private_key_file;  // for the controllers; empty: the signing key
  std::string cluster_cidr;
  keelson::controllers::Options manager;  // options that equal their flags; the rest is set at start
  SigningFlags signing;

  bool Has(const std::string& role) const {
    for (const std::string& one : roles) {
      if (one == role) return true;
    }
    return false;
  }
};

// Runs until SIGTERM or SIGINT. Returns the exit code.
int RunControlPlane(const Options& options);

}  // namespace keelson::controlplane
