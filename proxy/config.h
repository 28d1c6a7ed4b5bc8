// kube-proxy's settings: flags, and KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1) files.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::proxy {

struct HostPort {
  std::string host = "0.0.0.0";
  uint16_t port = 0;
};
// "10.0.0.1:10256", "[::]:10256", ":10256", "10.0.0.1" (then with `default_port`).
Result<HostPort> ParseHostPort(const std::string& text, uint16_t default_port);

struct Config {
  std::string kubeconfig;
  std::string hostname;  // empty: the machine's, in lower case
  std::string mode = "nftables";
  std::string table = "keelson-proxy";
  std::vector<IpPrefix> cluster_cidrs;
  std::string detect_local_mode = "ClusterCIDR";  // or NodeCIDR
  std::vector<std::string> nodeport_addresses;    // CIDRs; empty or "primary": the Node's own addresses
  bool masquerade_all = false;
  int masquerade_bit = 14;
  std::chrono::milliseconds min_sync_period{0};
  std::chrono::milliseconds sync_period{30000};   // how often the kernel is looked at for others' changes
  std::string healthz_address = "0.0.0.0:10256";  // empty: no server
  std::string metrics_address = "127.0.0.1:10249";
  int verbosity = 0;
};

// Comma separated.
Result<std::vector<IpPrefix>> ParseCidrs(const std::string& text);
// Go's form: "1s", "1m30s", "500ms".
Result<std::chrono::milliseconds> ParseDuration(const std::string& text);

// Overlays what the YAML document sets. Fields of other modes are ignored.
Result<> ReadConfigFile(const std::string& path, Config& config);
Result<> ParseConfig(const std::string& yaml, Config& config);
// What can only be said of the whole.
Result<> Validate(const Config& config);

}  // namespace keelson::proxy
