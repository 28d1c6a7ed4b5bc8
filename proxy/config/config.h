// The settings of kube-proxy, computed once from flags and the configuration file (document.h).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/ip.h"
#include "lib/base/ip_range.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/dataplane/nftables_names.h"
#include "proxy/dns/cluster_dns_options.h"

namespace keelson::proxy {

struct Document;

struct HostPort {
  std::string host = "0.0.0.0";
  uint16_t port = 0;
};
// "10.0.0.1:10256", "[::]:10256", ":10256", "10.0.0.1" (then with `default_port`).
Result<HostPort> ParseHostPort(const std::string& text, uint16_t default_port);
// Comma separated.
Result<std::vector<IpPrefix>> ParseCidrs(const std::string& text);

// The kernel's connection tracking. 0: unchanged.
struct ConntrackLimits {
  int max_per_core = 0, min = 0;
  std::chrono::seconds tcp_established{0}, tcp_close_wait{0}, udp{0}, udp_stream{0};
  bool tcp_be_liberal = false;
};

struct Config {
  std::string kubeconfig;
  std::string master;             // the API server's URL; overrides the kubeconfig
  std::string hostname;           // empty: the machine's, in lower case
  std::string asked_mode;         // as configured
  std::string mode = "nftables";  // the effective mode: nftables, ipvs or ebpf
  std::string table = dataplane::kDefaultTable;
  std::string ebpf_cgroup;  // the cgroup whose sockets mode ebpf serves; empty: the root of cgroup2
  // The largest number of clients that mode ebpf remembers (proxy/ebpf/datapath.h); 0: depends on the machine's memory.
  uint32_t ebpf_affinity_clients = 0, ebpf_udp_sockets = 0;
  std::string ebpf_pins = dataplane::kDefaultPinDirectory;  // pinned maps and programs
  std::vector<std::string>
      ebpf_devices;          // devices of traffic from outside; empty: all devices with addresses
  bool ebpf_dsr = false;     // direct server return: answers go to the client directly
  bool ebpf_direct = false;  // redirect to endpoints on other nodes past the node's rules
  std::vector<std::string> ebpf_xdp = {"auto"};  // drivers that run XDP programs (proxy/ebpf/xdp_programs.h)
  std::vector<IpPrefix> cluster_cidrs;
  std::string detect_local_mode = "ClusterCIDR";  // or NodeCIDR, BridgeInterface, InterfaceNamePrefix
  std::string pod_bridge, pod_interface_prefix;   // for the last two
  std::optional<IpAddress> node_ip;               // overrides the Node's address of that family
  std::vector<std::string> nodeport_addresses;    // CIDRs; empty or "primary": the Node's own addresses
  // Mode ipvs. Times of 0 stay unchanged.
  struct {
    std::string scheduler = "rr";
    std::vector<IpPrefix> excluded;
    bool strict_arp = false;
    std::chrono::seconds tcp{0}, tcp_fin{0}, udp{0};
  } ipvs;
  bool masquerade_all = false;
  int masquerade_bit = dataplane::kDefaultMasqueradeBit;
  std::chrono::milliseconds min_sync_period{0};
  std::chrono::milliseconds sync_period{30000};
  std::string healthz_address, metrics_address;  // empty: no server
  bool address_hard_fail = false;                // a server that cannot listen ends the program
  ConntrackLimits conntrack;
  int oom_score_adj = -999;
  dns::ClusterDnsOptions dns;
  AddressPool announced;  // load balancer addresses to announce
  std::map<std::string, bool> feature_gates;
  std::string configz;                       // the answer of /configz
  std::map<std::string, std::string> flags;  // name to value, of /flagz
  std::string config_file;
  // All settings that a running proxy cannot change. After a change of its configuration file a proxy continues if
  // these are equal, i.e. if only the mode and its settings differ.
  std::string fixed;
};

// kInvalid for settings that this program does not support.
Result<Config> Decide(const Document& document);

}  // namespace keelson::proxy
