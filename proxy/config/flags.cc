#include "proxy/config/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "lib/api/duration.h"
#include "lib/base/file.h"
#include "lib/component/document.h"
#include "lib/k8s/feature_gates.h"
#include "proxy/config/flags_without_effect.h"

namespace keelson::proxy {
namespace {

void AddDuration(CLI::App& app, const std::string& name, Document::Duration& field, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&field, name](const std::string& text) {
           Result<int64_t> nanos = api::ParseGoDuration(text);
           if (!nanos) {
             throw CLI::ValidationError("invalid argument \"" + text + "\" for \"" + name +
                                        "\" flag: " + nanos.error().message());
           }
           field = Document::Duration(*nanos);
         },
         help)
      ->type_name("DURATION");
}

// With commas, or several times; the empty value is the empty list.
CLI::Option* AddList(CLI::App& app, const std::string& name, std::vector<std::string>& field,
                     const std::string& help) {
  return app
      .add_option_function<std::vector<std::string>>(
          name,
          [&field](std::vector<std::string> values) {
            std::erase(values, "");
            field = std::move(values);
          },
          help)
      ->delimiter(',');
}

void AddProgramFlags(CLI::App& app, Flags& f) {
  Document& d = f.document;
  app.add_option("--config", f.config_file, "KubeProxyConfiguration file; other flags are then ignored");
  app.add_option("--write-config-to", f.write_config_to, "write the configuration to this file and exit");
  app.add_flag("--cleanup", f.cleanup, "remove the proxy's rules and exit");
  app.add_flag("--init-only", f.init_only, "only do what needs full root privileges, and exit");
  app.add_option_function<std::string>(
         "--feature-gates",
         [&d](const std::string& text) {
           if (auto parsed = k8s::ParseFeatureGates(text, d.feature_gates); !parsed)
             throw CLI::ValidationError("invalid argument \"" + text +
                                        "\" for \"--feature-gates\" flag: " + parsed.error().message());
         },
         "key=value pairs")
      ->trigger_on_parse();
  app.add_option("--kubeconfig", d.client.kubeconfig, "how to reach the API server");
  app.add_option("--master", f.master, "URL of the API server, over the kubeconfig's");
  app.add_option("--kube-api-content-type", d.client.content_type, "of requests to the API server");
  app.add_option("--kube-api-burst", d.client.burst, "burst of requests to the API server");
  app.add_option("--kube-api-qps", d.client.qps, "requests a second to the API server");
  app.add_option("--hostname-override", f.hostname_override, "this node's name; default: the host name");
  app.add_option("--bind-address", d.bind_address, "the node's primary address, if not the Node object's");
  app.add_option("--healthz-bind-address", d.healthz_bind_address, "default: 0.0.0.0:10256");
  app.add_option("--metrics-bind-address", d.metrics_bind_address, "default: 127.0.0.1:10249; empty: none");
  app.add_flag("--bind-address-hard-fail", d.bind_address_hard_fail, "end when a port cannot be bound");
  app.add_flag("--profiling", d.enable_profiling, "accepted, without effect");
  app.add_option("--show-hidden-metrics-for-version", d.show_hidden_metrics_for_version,
                 "accepted, without effect");
  app.add_option("--healthz-port", f.healthz_port, "deprecated: use --healthz-bind-address; 0: none");
  app.add_option("--metrics-port", f.metrics_port, "deprecated: use --metrics-bind-address; 0: none");
  app.add_option("--oom-score-adj", d.oom_score_adj, "of this process, -1000 to 1000");
  AddDuration(app, "--config-sync-period", d.config_sync_period, "accepted, without effect");
}

void AddDataplaneFlags(CLI::App& app, Flags& f) {
  Document& d = f.document;
  app.add_option("--proxy-mode", d.mode, "nftables, which iptables and blank stand for too, ipvs or ebpf");
  app.add_option("--nft-table", f.table, "name of the nftables tables; default: keelson-proxy");
  app.add_option("--detect-local-mode", d.detect_local_mode,
                 "how pods are told: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix");
  app.add_option("--cluster-cidr", d.cluster_cidr, "CIDRs of the cluster's pods, comma separated");
  app.add_option("--pod-bridge-interface", d.detect_local.bridge_interface,
                 "the bridge that pods are behind");
  app.add_option("--pod-interface-name-prefix", d.detect_local.interface_name_prefix,
                 "how the names of pods' interfaces begin");
  AddList(app, "--nodeport-addresses", d.node_port_addresses,
          "CIDRs of the addresses NodePorts answer on, or \"primary\"");
  app.add_flag_function(
      "--masquerade-all",
      [&d](int64_t on) { d.iptables.masquerade_all = d.nftables.masquerade_all = on > 0; },
      "masquerade all traffic to cluster IPs");
  app.add_option("--iptables-masquerade-bit", d.iptables.masquerade_bit, "bit of the packet mark, 0 to 31");
  app.add_flag("--iptables-localhost-nodeports", d.iptables.localhost_node_ports,
               "without effect: NodePorts are not served on loopback addresses");
  AddDuration(app, "--min-sync-period", f.min_sync_period, "least time between two syncs; default: 0s");
  AddDuration(app, "--sync-period", f.sync_period, "how often what failed is tried again; default: 30s");
  AddDuration(app, "--iptables-sync-period", f.iptables_sync_period, "the same, in mode iptables");
  AddDuration(app, "--iptables-min-sync-period", f.iptables_min_sync_period, "the same, in mode iptables");
}

void AddConntrackFlags(CLI::App& app, Document& d) {
  app.add_option("--conntrack-max-per-core", d.conntrack.max_per_core,
                 "tracked connections per CPU core; 0: as it is");
  app.add_option("--conntrack-min", d.conntrack.min, "tracked connections at least");
  app.add_flag("--conntrack-tcp-be-liberal", d.conntrack.tcp_be_liberal, "accept packets out of window");
  AddDuration(app, "--conntrack-tcp-timeout-established", d.conntrack.tcp_established_timeout,
              "of idle TCP connections; 0: as it is");
  AddDuration(app, "--conntrack-tcp-timeout-close-wait", d.conntrack.tcp_close_wait_timeout,
              "of TCP connections in CLOSE_WAIT; 0: as it is");
  AddDuration(app, "--conntrack-udp-timeout", d.conntrack.udp_timeout, "of unanswered UDP; 0: as it is");
  AddDuration(app, "--conntrack-udp-timeout-stream", d.conntrack.udp_stream_timeout,
              "of answered UDP; 0: as it is");
}

void AddDnsFlags(CLI::App& app, Flags& f) {
  app.add_option("--cluster-dns-address", f.dns_addresses,
                 "answer the cluster's DNS on this address, or one of each family; default: no DNS");
  app.add_option("--cluster-domain", f.dns.domain, "the cluster's DNS domain; default: cluster.local");
  app.add_option("--resolv-conf", f.dns.resolv_conf,
                 "whose servers are asked for other names; default: /etc/resolv.conf; empty: none");
  app.add_option("--stub-domain", f.stub_domains,
                 "DOMAIN=SERVER[:PORT],...: who is asked for the names of a domain; may be repeated");
}

void AddEbpfFlags(CLI::App& app, Flags& f) {
  app.add_option("--ebpf-cgroup", f.ebpf_cgroup,
                 "directory of cgroup2 whose processes mode ebpf serves; default: all");
  app.add_option("--ebpf-pin-directory", f.ebpf_pins,
                 "where mode ebpf pins its maps and programs; default: /sys/fs/bpf/keelson");
  const CLI::Range entries(uint32_t{1024}, uint32_t{1} << 24);
  app.add_option(
         "--ebpf-affinity-clients", f.ebpf_affinity_clients,
         "how many pods' endpoints mode ebpf remembers by session affinity; default: by the machine's memory")
      ->check(entries);
  app.add_option("--ebpf-udp-sockets", f.ebpf_udp_sockets,
                 "how many sockets of UDP mode ebpf remembers; default: by the machine's memory")
      ->check(entries);
  AddList(
      app, "--ebpf-devices", f.ebpf_devices,
      "names, with * and ?, of devices by which mode ebpf serves who comes from outside; default: those with "
      "addresses that are not the pods'");
  app.add_flag(
      "--ebpf-direct", f.ebpf_direct,
      "send connections from outside on to endpoints of other nodes past the node's rules and connection "
      "tracking, where no IPsec policy is; default: false");
  app.add_flag(
      "--ebpf-dsr", f.ebpf_dsr,
      "have answers to such connections of TCP go straight from the endpoint's node to the client, for "
      "which all nodes need --ebpf-dsr; default: false");
  AddList(app, "--ebpf-xdp", f.ebpf_xdp,
          "auto, off, or names, with * and ?, of devices whose drivers send packets of such connections on "
          "(XDP); "
          "default: auto, those that can and are no veths");
}

void AddAnnounceFlags(CLI::App& app, Flags& f) {
  AddList(app, "--announce-addresses", f.announced,
          "ranges of load balancer addresses to announce by ARP and NDP; default: none");
}

// Of mode ipvs, and of logging.
void AddOtherFlags(CLI::App& app, Flags& f) {
  Document& d = f.document;
  app.add_option("--ipvs-scheduler", d.ipvs.scheduler)->group("");
  AddList(app, "--ipvs-exclude-cidrs", d.ipvs.exclude_cidrs, "")->group("");
  app.add_flag("--ipvs-strict-arp", d.ipvs.strict_arp)->group("");
  AddDuration(app, "--ipvs-sync-period", f.ipvs_sync_period, "of mode ipvs");
  AddDuration(app, "--ipvs-min-sync-period", f.ipvs_min_sync_period, "of mode ipvs");
  AddDuration(app, "--ipvs-tcp-timeout", d.ipvs.tcp_timeout, "of mode ipvs");
  AddDuration(app, "--ipvs-tcpfin-timeout", d.ipvs.tcp_fin_timeout, "of mode ipvs");
  AddDuration(app, "--ipvs-udp-timeout", d.ipvs.udp_timeout, "of mode ipvs");
  app.add_option("--logging-format", d.logging.format, "text or json");
  AddDuration(app, "--log-flush-frequency", d.logging.flush_frequency, "accepted, without effect");
  AddFlagsWithoutEffect(app);
  app.add_option("-v,--v", f.verbosity, "log verbosity; from 2 on debug messages");
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
  ASSIGN_OR_RETURN(std::string text, ReadFile(f.config_file));
  Document loaded;
  std::vector<std::string> problems;
  RETURN_IF_ERROR(ReadDocument(text, loaded, problems));
  RETURN_IF_ERROR(component::TellProblems({.strict = std::move(problems)}));
  f.document = std::move(loaded);
  return {};
}

}  // namespace

void AddFlags(CLI::App& app, Flags& flags) {
  AddProgramFlags(app, flags);
  AddDataplaneFlags(app, flags);
  AddConntrackFlags(app, flags.document);
  AddDnsFlags(app, flags);
  AddAnnounceFlags(app, flags);
  AddEbpfFlags(app, flags);
  AddOtherFlags(app, flags);
}

Result<> Complete(const CLI::App& app, Flags& f) {
  if (f.config_file.empty()) {
    ProcessFlags(app, f);
  } else {
    const auto of_flags = f.document.logging;
    RETURN_IF_ERROR(LoadFile(f));
    // As upstream has it, these alone win over the file.
    auto& logging = f.document.logging;
    if (Given(app, "--logging-format")) logging.format = of_flags.format;
    if (Given(app, "--log-flush-frequency")) logging.flush_frequency = of_flags.flush_frequency;
  }
  RETURN_IF_ERROR(k8s::CheckFeatureGates(f.document.feature_gates));
  auto move = [&](const char* flag, Document::Duration from, auto... to) {
    if (Given(app, flag)) ((*to = from), ...);
  };
  move("--sync-period", f.sync_period, &f.document.nftables.sync_period, &f.document.iptables.sync_period,
       &f.document.ipvs.sync_period);
  move("--min-sync-period", f.min_sync_period, &f.document.nftables.min_sync_period,
       &f.document.iptables.min_sync_period, &f.document.ipvs.min_sync_period);
  if (!f.hostname_override.empty()) {
    std::string name = f.hostname_override;
    auto space = [](unsigned char c) { return std::isspace(c); };
    name.erase(std::find_if_not(name.rbegin(), name.rend(), space).base(), name.end());
    name.erase(name.begin(), std::find_if_not(name.begin(), name.end(), space));
    if (name.empty()) return Error(Code::kInvalid, "empty hostname-override is invalid");
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    f.document.hostname_override = name;
  }
  SetDefaults(f.document);
  return {};
}

Result<Config> Decide(const CLI::App& app, const Flags& f) {
  ASSIGN_OR_RETURN(Config config, Decide(f.document));
  config.table = f.table;
  config.master = f.master;
  config.config_file = f.config_file;
  config.dns = f.dns;
  if (Given(app, "--cluster-dns-address")) {
    ASSIGN_OR_RETURN(config.dns.addresses, dns::ParseDnsAddresses(f.dns_addresses));
  }
  for (const std::string& text : f.stub_domains) {
    ASSIGN_OR_RETURN(dns::StubDomain stub, dns::ParseStubDomain(text));
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
