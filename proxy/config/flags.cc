#include "proxy/config/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "lib/api/duration.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/component/document.h"
#include "lib/component/flag_adder.h"
#include "lib/component/flags.h"
#include "lib/k8s/feature_gates.h"
#include "proxy/config/flags_without_effect.h"

namespace keelson::proxy {
namespace {

using component::FlagAdder;

void AddProgramFlags(const FlagAdder& add, Flags& f) {
  Document& d = f.document;
  add("--config", f.config_file, "KubeProxyConfiguration file; other flags are then ignored");
  add("--write-config-to", f.write_config_to, "Write the configuration to this file and exit");
  add("--cleanup", f.cleanup, "Remove the proxy's rules and exit");
  add("--init-only", f.init_only, "Only do what needs full root privileges, and exit");
  add.app
      .add_option_function<std::string>(
          "--feature-gates",
          [&d](const std::string& text) {
            if (auto parsed = k8s::ParseFeatureGates(text, d.feature_gates); !parsed) {
              throw CLI::ValidationError("invalid argument \"" + text +
                                         "\" for \"--feature-gates\" flag: " + parsed.error().message());
            }
          },
          "Features to turn on or off: name=true,name=false; may be repeated")
      ->trigger_on_parse();
  add("--kubeconfig", d.client.kubeconfig, "How to reach the API server");
  add("--master", f.master, "URL of the API server, over the kubeconfig's");
  add("--kube-api-content-type", d.client.content_type, "Content type of requests to the API server");
  add("--kube-api-burst", d.client.burst, "Burst of requests to the API server");
  add("--kube-api-qps", d.client.qps, "Requests a second to the API server");
  add("--hostname-override", f.hostname_override, "This node's name; default: the host name");
  add("--bind-address", d.bind_address, "The node's primary address, if not the Node object's");
  add("--healthz-bind-address", d.healthz_bind_address, "Address of /healthz; default: 0.0.0.0:10256");
  add("--metrics-bind-address", d.metrics_bind_address,
      "Address of /metrics; default: 127.0.0.1:10249; empty: none");
  add("--bind-address-hard-fail", d.bind_address_hard_fail, "End when a port cannot be bound");
  add("--profiling", d.enable_profiling, "No effect");
  add("--show-hidden-metrics-for-version", d.show_hidden_metrics_for_version, "No effect");
  add("--healthz-port", f.healthz_port, "Deprecated: use --healthz-bind-address; 0: none");
  add("--metrics-port", f.metrics_port, "Deprecated: use --metrics-bind-address; 0: none");
  add("--oom-score-adj", d.oom_score_adj, "The oom_score_adj of this process, -1000 to 1000");
  add("--config-sync-period", d.config_sync_period, "No effect");
}

void AddDataplaneFlags(const FlagAdder& add, Flags& f) {
  Document& d = f.document;
  add("--proxy-mode", d.mode, "Dataplane: nftables, which iptables and blank stand for too, ipvs or ebpf");
  add("--nft-table", f.table, "Name of the nftables tables");
  add("--detect-local-mode", d.detect_local_mode,
      "How pods are told: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix");
  add("--cluster-cidr", d.cluster_cidr, "CIDRs of the cluster's pods, comma separated");
  add("--pod-bridge-interface", d.detect_local.bridge_interface, "Bridge that pods are behind");
  add("--pod-interface-name-prefix", d.detect_local.interface_name_prefix,
      "How the names of pods' interfaces begin");
  add("--nodeport-addresses", d.node_port_addresses,
      "CIDRs of the addresses NodePorts answer on, or \"primary\"");
  add.app.add_flag_function(
      "--masquerade-all",
      [&d](int64_t on) { d.iptables.masquerade_all = d.nftables.masquerade_all = on > 0; },
      "Masquerade all traffic to cluster IPs");
  add("--iptables-masquerade-bit", d.iptables.masquerade_bit, "Bit of the packet mark, 0 to 31");
  add("--iptables-localhost-nodeports", d.iptables.localhost_node_ports, "No effect");
  add("--min-sync-period", f.min_sync_period, "Least time between two syncs");
  add("--sync-period", f.sync_period, "How often what failed is tried again")->default_str("30s");
  add("--iptables-sync-period", f.iptables_sync_period, "The --sync-period of mode iptables")
      ->default_str("30s");
  add("--iptables-min-sync-period", f.iptables_min_sync_period, "The --min-sync-period of mode iptables");
}

void AddConntrackFlags(const FlagAdder& add, Document& d) {
  add("--conntrack-max-per-core", d.conntrack.max_per_core, "Tracked connections per CPU core; 0: as it is");
  add("--conntrack-min", d.conntrack.min, "Least number of tracked connections");
  add("--conntrack-tcp-be-liberal", d.conntrack.tcp_be_liberal, "Accept packets out of window");
  add("--conntrack-tcp-timeout-established", d.conntrack.tcp_established_timeout,
      "Timeout of idle TCP connections; 0: as it is");
  add("--conntrack-tcp-timeout-close-wait", d.conntrack.tcp_close_wait_timeout,
      "Timeout of TCP connections in CLOSE_WAIT; 0: as it is");
  add("--conntrack-udp-timeout", d.conntrack.udp_timeout, "Timeout of unanswered UDP; 0: as it is");
  add("--conntrack-udp-timeout-stream", d.conntrack.udp_stream_timeout,
      "Timeout of answered UDP; 0: as it is");
}

void AddDnsFlags(const FlagAdder& add, Flags& f) {
  add("--cluster-dns-address", f.dns_addresses,
      "Answer the cluster's DNS on this address, or one of each family; default: no DNS");
  add("--cluster-domain", f.dns.domain, "The cluster's DNS domain");
  add("--resolv-conf", f.dns.resolv_conf, "Whose servers are asked for other names; empty: none");
  add.app.add_option(
      "--stub-domain", f.stub_domains,
      "Servers that are asked for the names of a domain, DOMAIN=SERVER[:PORT],...; may be repeated");
}

void AddEbpfFlags(const FlagAdder& add, Flags& f) {
  add("--ebpf-cgroup", f.ebpf_cgroup, "Directory of cgroup2 whose processes mode ebpf serves; default: all");
  add("--ebpf-pin-directory", f.ebpf_pins,
      "Where mode ebpf pins its maps and programs; default: /sys/fs/bpf/keelson");
  const CLI::Range entries(uint32_t{1024}, uint32_t{1} << 24);
  add("--ebpf-affinity-clients", f.ebpf_affinity_clients,
      "How many pods' endpoints mode ebpf remembers by session affinity; default: by the machine's memory")
      ->check(entries);
  add("--ebpf-udp-sockets", f.ebpf_udp_sockets,
      "How many sockets of UDP mode ebpf remembers; default: by the machine's memory")
      ->check(entries);
  add("--ebpf-devices", f.ebpf_devices,
      "Names, with * and ?, of devices by which mode ebpf serves who comes from outside; default: those with "
      "addresses that are not the pods'");
  add("--ebpf-direct", f.ebpf_direct,
      "Send connections from outside on to endpoints of other nodes past the node's rules and connection "
      "tracking, where no IPsec policy is");
  add("--ebpf-dsr", f.ebpf_dsr,
      "Have answers to such connections of TCP go straight from the endpoint's node to the client, for "
      "which all nodes need --ebpf-dsr");
  add("--ebpf-xdp", f.ebpf_xdp,
      "Devices whose drivers send packets of such connections on (XDP): auto, off, or names, with * and ?; "
      "default: auto, those that can and are no veths");
}

void AddAnnounceFlags(const FlagAdder& add, Flags& f) {
  add("--announce-addresses", f.announced,
      "Ranges of load balancer addresses to announce by ARP and NDP; default: none");
}

// Of mode ipvs, and of logging.
void AddOtherFlags(const FlagAdder& add, Flags& f) {
  Document& d = f.document;
  add("--ipvs-scheduler", d.ipvs.scheduler, "Scheduler of virtual servers, of mode ipvs; none: rr");
  add("--ipvs-exclude-cidrs", d.ipvs.exclude_cidrs, "CIDRs whose virtual servers mode ipvs leaves alone");
  add("--ipvs-strict-arp", d.ipvs.strict_arp, "Answer ARP for no address of the link of mode ipvs");
  add("--ipvs-sync-period", f.ipvs_sync_period, "The --sync-period of mode ipvs")->default_str("30s");
  add("--ipvs-min-sync-period", f.ipvs_min_sync_period, "The --min-sync-period of mode ipvs");
  add("--ipvs-tcp-timeout", d.ipvs.tcp_timeout, "Timeout of idle TCP connections in mode ipvs; 0: as it is");
  add("--ipvs-tcpfin-timeout", d.ipvs.tcp_fin_timeout,
      "Timeout of TCP connections after a FIN in mode ipvs; 0: as it is");
  add("--ipvs-udp-timeout", d.ipvs.udp_timeout, "Timeout of UDP packets in mode ipvs; 0: as it is");
  add("--logging-format", d.logging.format, "Format of the log: text or json");
  add("--log-flush-frequency", d.logging.flush_frequency, "No effect");
  add("-v,--v", f.verbosity, "Log verbosity; 4 and above show debugging messages");
  component::AddFlagsWithoutEffect(add.app, FlagsWithoutEffect());
}

bool Given(const CLI::App& app, const char* flag) { return app.count(flag) > 0; }

// Flags that have no field of their own in the document.
void ProcessFlags(const CLI::App& app, Flags& f) {
  Document& d = f.document;
  auto move = [&](const char* flag, Document::Duration from, Document::Duration& to) {
    if (Given(app, flag)) to = from;
  };
  move("--iptables-sync-period", f.iptables_sync_period, d.iptables.sync_period);
  move("--iptables-min-sync-period", f.iptables_min_sync_period, d.iptables.min_sync_period);
  move("--ipvs-sync-period", f.ipvs_sync_period, d.ipvs.sync_period);
  move("--ipvs-min-sync-period", f.ipvs_min_sync_period, d.ipvs.min_sync_period);
  if (Given(app, "--healthz-port") && !Given(app, "--healthz-bind-address")) {
    d.healthz_bind_address = "0.0.0.0:" + std::to_string(f.healthz_port);
  }
  if (Given(app, "--metrics-port") && !Given(app, "--metrics-bind-address")) {
    d.metrics_bind_address = "127.0.0.1:" + std::to_string(f.metrics_port);
  }
}

Result<> LoadFile(Flags& f) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(f.config_file));
  Document loaded;
  std::vector<std::string> problems;
  KEELSON_RETURN_IF_ERROR(ReadDocument(text, loaded, problems));
  KEELSON_RETURN_IF_ERROR(component::TellProblems({.strict = std::move(problems)}));
  f.document = std::move(loaded);
  return {};
}

}  // namespace

void AddFlags(CLI::App& app, Flags& flags) {
  const FlagAdder add{app};
  AddProgramFlags(add, flags);
  AddDataplaneFlags(add, flags);
  AddConntrackFlags(add, flags.document);
  AddDnsFlags(add, flags);
  AddAnnounceFlags(add, flags);
  AddEbpfFlags(add, flags);
  AddOtherFlags(add, flags);
}

Result<> Complete(const CLI::App& app, Flags& f) {
  if (f.config_file.empty()) {
    ProcessFlags(app, f);
  } else {
    const auto of_flags = f.document.logging;
    KEELSON_RETURN_IF_ERROR(LoadFile(f));
    // As upstream has it, these alone win over the file.
    auto& logging = f.document.logging;
    if (Given(app, "--logging-format")) logging.format = of_flags.format;
    if (Given(app, "--log-flush-frequency")) logging.flush_frequency = of_flags.flush_frequency;
  }
  KEELSON_RETURN_IF_ERROR(k8s::CheckFeatureGates(f.document.feature_gates));
  auto move = [&](const char* flag, Document::Duration from, auto... to) {
    if (Given(app, flag)) ((*to = from), ...);
  };
  move("--sync-period", f.sync_period, &f.document.nftables.sync_period, &f.document.iptables.sync_period,
       &f.document.ipvs.sync_period);
  move("--min-sync-period", f.min_sync_period, &f.document.nftables.min_sync_period,
       &f.document.iptables.min_sync_period, &f.document.ipvs.min_sync_period);
  if (!f.hostname_override.empty()) {
    std::string name = f.hostname_override;
    name = Lower(Trim(name));
    if (name.empty()) return Error(Code::kInvalid, "empty hostname-override is invalid");
    f.document.hostname_override = name;
  }
  SetDefaults(f.document);
  return {};
}

Result<Config> Decide(const CLI::App& app, const Flags& f) {
  KEELSON_ASSIGN_OR_RETURN(Config config, Decide(f.document));
  config.table = f.table;
  config.master = f.master;
  config.config_file = f.config_file;
  config.flags = FlagsByName(FlagsOf(app));
  config.dns = f.dns;
  if (Given(app, "--cluster-dns-address")) {
    KEELSON_ASSIGN_OR_RETURN(config.dns.addresses, dns::ParseDnsAddresses(f.dns_addresses));
  }
  for (const std::string& text : f.stub_domains) {
    KEELSON_ASSIGN_OR_RETURN(dns::StubDomain stub, dns::ParseStubDomain(text));
    config.dns.stub_domains.push_back(std::move(stub));
  }
  Result<AddressPool> announced = AddressPool::Parse(f.announced);
  if (!announced) return announced.error().Wrap("--announce-addresses");
  config.announced = *std::move(announced);
  config.ebpf_cgroup = f.ebpf_cgroup;
  if (!f.ebpf_pins.empty()) config.ebpf_pins = f.ebpf_pins;
  config.ebpf_devices = f.ebpf_devices;
  if (f.ebpf_dsr && !f.ebpf_direct) return Error(Code::kInvalid, "--ebpf-dsr needs --ebpf-direct");
  config.ebpf_direct = f.ebpf_direct;
  config.ebpf_dsr = f.ebpf_dsr;
  if (!f.ebpf_xdp.empty()) config.ebpf_xdp = f.ebpf_xdp;
  config.ebpf_affinity_clients = f.ebpf_affinity_clients;
  config.ebpf_udp_sockets = f.ebpf_udp_sockets;
  // The kernel of each node that has an address answers for it; the one that is to speak would not be heard.
  if (config.mode == "ipvs" && !f.announced.empty() && !config.ipvs.strict_arp) {
    return Error(Code::kInvalid, "--announce-addresses needs ipvs.strictARP in mode ipvs");
  }
  // No server at all: by an empty address, or port 0.
  if (f.config_file.empty()) {
    auto none = [&](const char* address, const char* port, int number) {
      if (Given(app, address)) return app.get_option(address)->as<std::string>().empty();
      return Given(app, port) && number == 0;
    };
    if (none("--healthz-bind-address", "--healthz-port", f.healthz_port)) config.healthz_address.clear();
    if (none("--metrics-bind-address", "--metrics-port", f.metrics_port)) config.metrics_address.clear();
  }
  return config;
}

}  // namespace keelson::proxy
