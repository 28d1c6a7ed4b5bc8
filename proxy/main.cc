// kube-proxy: Services in the kernel of this node.
#include <CLI/CLI.hpp>
#include <iostream>

#include "lib/base/log.h"
#include "proxy/services.h"

namespace {

using keelson::Result;

// Flags as they were given; they win over the configuration file.
struct Flags {
  std::string config_file, cluster_cidr, min_sync_period, sync_period;
  bool cleanup = false;
};

Result<> Resolve(const CLI::App& app, const Flags& flags, const keelson::proxy::Config& given,
                 keelson::proxy::Config& config) {
  if (!flags.config_file.empty()) RETURN_IF_ERROR(keelson::proxy::ReadConfigFile(flags.config_file, config));
  auto set = [&](const char* name) { return app.count(name) > 0; };
  if (set("--kubeconfig")) config.kubeconfig = given.kubeconfig;
  if (set("--hostname-override")) config.hostname = given.hostname;
  if (set("--proxy-mode")) config.mode = given.mode;
  if (set("--nft-table")) config.table = given.table;
  if (set("--detect-local-mode")) config.detect_local_mode = given.detect_local_mode;
  if (set("--nodeport-addresses")) config.nodeport_addresses = given.nodeport_addresses;
  if (set("--masquerade-all")) config.masquerade_all = given.masquerade_all;
  if (set("--healthz-bind-address")) config.healthz_address = given.healthz_address;
  if (set("--metrics-bind-address")) config.metrics_address = given.metrics_address;
  if (set("--cluster-cidr")) {
    ASSIGN_OR_RETURN(config.cluster_cidrs, keelson::proxy::ParseCidrs(flags.cluster_cidr));
  }
  if (set("--min-sync-period")) {
    ASSIGN_OR_RETURN(config.min_sync_period, keelson::proxy::ParseDuration(flags.min_sync_period));
  }
  if (set("--sync-period")) {
    ASSIGN_OR_RETURN(config.sync_period, keelson::proxy::ParseDuration(flags.sync_period));
  }
  return keelson::proxy::Validate(config);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"kube-proxy programs Kubernetes Services into this node's nftables"};
  app.set_version_flag("--version", std::string("Kubernetes v1.36.2"));
  Flags flags;
  keelson::proxy::Config given;
  app.add_option("--config", flags.config_file, "KubeProxyConfiguration file");
  app.add_option("--kubeconfig", given.kubeconfig, "how to reach the API server");
  app.add_option("--hostname-override", given.hostname, "this node's name; default: the host name");
  app.add_option("--proxy-mode", given.mode, "nftables");
  app.add_option("--nft-table", given.table, "name of the nftables tables; default: keelson-proxy");
  app.add_option("--cluster-cidr", flags.cluster_cidr, "CIDRs of the cluster's pods, comma separated");
  app.add_option("--detect-local-mode", given.detect_local_mode,
                 "how pods are told: ClusterCIDR or NodeCIDR");
  app.add_option("--nodeport-addresses", given.nodeport_addresses,
                 "CIDRs of the addresses NodePorts answer on, or \"primary\"")
      ->delimiter(',');
  app.add_flag("--masquerade-all", given.masquerade_all, "masquerade all traffic to cluster IPs");
  app.add_option("--min-sync-period", flags.min_sync_period, "least time between two syncs; default: 0");
  app.add_option("--sync-period", flags.sync_period,
                 "how often others' changes are looked for; default: 30s");
  app.add_option("--healthz-bind-address", given.healthz_address, "default: 0.0.0.0:10256; empty: none");
  app.add_option("--metrics-bind-address", given.metrics_address, "default: 127.0.0.1:10249; empty: none");
  // Flags of other proxies that deployments pass along.
  std::string ignored;
  for (const char* name : {"--bind-address", "--conntrack-max-per-core", "--conntrack-min", "--feature-gates",
                           "--conntrack-tcp-timeout-established", "--conntrack-tcp-timeout-close-wait",
                           "--oom-score-adj", "--iptables-sync-period", "--iptables-min-sync-period"}) {
    app.add_option(name, ignored, "accepted, without effect")->group("");
  }
  app.add_option("-v,--v", given.verbosity, "log verbosity; from 2 on debug messages");
  app.add_flag("--cleanup", flags.cleanup, "remove the proxy's rules and exit");
  CLI11_PARSE(app, argc, argv);

  keelson::proxy::Config config;
  if (given.verbosity >= 2) keelson::log::SetLevel(keelson::log::Level::kDebug);
  Result<> resolved = Resolve(app, flags, given, config);
  if (resolved && flags.cleanup) resolved = keelson::proxy::Cleanup(config);
  if (!resolved) {
    std::cerr << "kube-proxy: " << resolved.error().message() << "\n";
    return 1;
  }
  return flags.cleanup ? 0 : keelson::proxy::RunProxy(config);
}
