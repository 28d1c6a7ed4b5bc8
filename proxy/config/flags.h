// The command line: upstream's flags and a few of our own.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "proxy/config/config.h"
#include "proxy/config/document.h"
#include "proxy/dns/cluster_dns_options.h"

namespace CLI {
class App;
}

namespace keelson::proxy {

struct Flags {
  Document document;  // values of flags with a field there; a configuration file replaces them
  std::string config_file, write_config_to, master, hostname_override, table = "keelson-proxy";
  Document::Duration sync_period{0}, min_sync_period{0};  // --sync-period, --min-sync-period
  Document::Duration iptables_sync_period{0}, iptables_min_sync_period{0};
  Document::Duration ipvs_sync_period{0}, ipvs_min_sync_period{0};
  int healthz_port = 10256, metrics_port = 10249;
  int verbosity = 0;
  bool cleanup = false, init_only = false;
  dns::ClusterDnsOptions dns;
  std::string dns_addresses;
  std::vector<std::string> stub_domains, announced;
  std::string ebpf_cgroup, ebpf_pins;
  uint32_t ebpf_affinity_clients = 0, ebpf_udp_sockets = 0;
  std::vector<std::string> ebpf_devices;
  bool ebpf_direct = false, ebpf_dsr = false;
  std::vector<std::string> ebpf_xdp;
};

// For ParseFlags() of lib/component/flags.h.
void AddFlags(CLI::App& app, Flags& flags);

// After parsing: reads the configuration file, if there is one, and applies the flags that hold beside it. Logs
// unknown fields of the file.
Result<> Complete(const CLI::App& app, Flags& flags);

// The settings of flags after Complete().
Result<Config> Decide(const CLI::App& app, const Flags& flags);

}  // namespace keelson::proxy
