// KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1) with upstream's fields and defaults, for configuration
// files, --write-config-to and /configz.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::proxy {

struct Document {
  using Duration = std::chrono::nanoseconds;
  std::map<std::string, bool> feature_gates;
  struct {
    std::string kubeconfig, accept_content_types, content_type = "application/vnd.kubernetes.protobuf";
    double qps = 5;
    int burst = 10;
  } client;
  struct {
    std::string format = "text";
    Duration flush_frequency = std::chrono::seconds(5);
    int verbosity = 0;
  } logging;
  std::string hostname_override, bind_address = "0.0.0.0";
  std::string healthz_bind_address, metrics_bind_address;  // defaulted by SetDefaults
  bool bind_address_hard_fail = false, enable_profiling = false;
  std::string show_hidden_metrics_for_version, mode;
  struct {
    int masquerade_bit = 14;
    bool masquerade_all = false, localhost_node_ports = true;
    Duration sync_period = std::chrono::seconds(30), min_sync_period{0};
  } iptables;
  struct {
    Duration sync_period = std::chrono::seconds(30), min_sync_period{0};
    std::string scheduler;
    std::vector<std::string> exclude_cidrs;
    bool strict_arp = false;
    Duration tcp_timeout{0}, tcp_fin_timeout{0}, udp_timeout{0};
  } ipvs;
  struct {
    int masquerade_bit = 14;
    bool masquerade_all = false;
    // Upstream batches changes for a second by default. Here a change has a small cost and is written at once.
    Duration sync_period = std::chrono::seconds(30), min_sync_period{0};
  } nftables;
  struct {
    std::string network_name, source_vip, root_hns_endpoint_name;
    bool enable_dsr = false, forward_health_check_vip = false;
  } winkernel;
  std::string detect_local_mode = "ClusterCIDR";
  struct {
    std::string bridge_interface, interface_name_prefix;
  } detect_local;
  std::string cluster_cidr;
  std::vector<std::string> node_port_addresses;
  int oom_score_adj = -999;
  struct {
    int max_per_core = 32 << 10, min = 128 << 10;
    Duration tcp_established_timeout = std::chrono::hours(24), tcp_close_wait_timeout = std::chrono::hours(1);
    bool tcp_be_liberal = false;
    Duration udp_timeout{0}, udp_stream_timeout{0};
  } conntrack;
  Duration config_sync_period = std::chrono::minutes(15);
  std::string port_range;
  bool windows_run_as_service = false;
};

// Applies the fields of the YAML (or JSON) text; a zero in a field with a default counts as unset. Unknown fields are
// no error: `problems` gets them. kInvalid with upstream's texts.
Result<> ReadDocument(const std::string& text, Document& document, std::vector<std::string>& problems);
// Sets addresses that depend on others.
void SetDefaults(Document& document);
std::string ToYaml(const Document& document);
// {"kubeproxy.config.k8s.io": {...}} with the names of upstream's internal type.
std::string ToConfigz(const Document& document);
// All problems, with upstream's texts.
std::vector<std::string> Problems(const Document& document);

}  // namespace keelson::proxy
