// kube-cni: connects the pods of this node with those of all others.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cni/agent/services.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/component/flags.h"
#include "lib/event/loop.h"

namespace {

using keelson::Result;
namespace agent = keelson::cni::agent;

// Flags that need further parsing.
struct Texts {
  std::string cluster_cidr, mode = "auto", encryption = "none", bgp_peers, healthz, metrics;
};

Result<> Resolve(const Texts& texts, agent::Config& config) {
  ASSIGN_OR_RETURN(config.cluster_cidrs, agent::ParseCidrs(texts.cluster_cidr));
  ASSIGN_OR_RETURN(config.mode, agent::ParseMode(texts.mode));
  ASSIGN_OR_RETURN(config.encryption, agent::ParseEncryption(texts.encryption));
  ASSIGN_OR_RETURN(config.bgp.peers, agent::ParseBgpPeers(texts.bgp_peers));
  ASSIGN_OR_RETURN(config.healthz, agent::ParseHostPort(texts.healthz));
  ASSIGN_OR_RETURN(config.metrics, agent::ParseHostPort(texts.metrics));
  return agent::Validate(config);
}

Result<> CheckRequired(const agent::Config& config) {
  for (auto [value, flag] :
       {std::pair(&config.kubeconfig, "--kubeconfig"), std::pair(&config.node_name, "--node-name"),
        std::pair(&config.conf_dir, "--cni-conf-dir")}) {
    if (value->empty()) return keelson::Error(keelson::Code::kInvalid, std::string(flag) + " is required");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  keelson::event::LoopsOfProcess loops;
  CLI::App app{"kube-cni connects the pods of this node with those of the cluster's other nodes"};
  app.set_version_flag("--version", keelson::VersionText());
  agent::Config config;
  Texts texts;
  bool cleanup = false;
  int verbosity = 0;
  app.add_option("--kubeconfig", config.kubeconfig, "how to reach the API server");
  app.add_option("--node-name", config.node_name, "this node's name");
  app.add_option("--cni-conf-dir", config.conf_dir, "where the runtime reads CNI configurations");
  app.add_option("--cni-conf-name", config.conf_name, "file name of the one written there")
      ->capture_default_str();
  app.add_option("--cni-data-dir", config.data_dir, "dataDir of host-local")->capture_default_str();
  app.add_option(
      "--cni-bin-dir", config.bin_dir,
      "where the plugins are; portmap and bandwidth are chained if found there, without it always");
  app.add_option("--bridge", config.bridge, "bridge that pods are joined to")->capture_default_str();
  app.add_option("--cluster-cidr", texts.cluster_cidr, "CIDRs of all pods, comma separated");
  app.add_option("--mode", texts.mode, "auto, host-gw, vxlan or none")->capture_default_str();
  app.add_option("--mtu", config.mtu, "of pods; 0: the uplink's less what encapsulation takes");
  app.add_option("--vxlan-port", config.vxlan_port, "UDP port")->capture_default_str();
  app.add_option("--vxlan-id", config.vxlan_id, "network identifier")->capture_default_str();
  app.add_option("--vxlan-device", config.vxlan_device, "name of the device")->capture_default_str();
  app.add_option("--encryption", texts.encryption, "none, ipsec or wireguard")->capture_default_str();
  app.add_option("--ipsec-key-file", config.ipsec_key_file,
                 "pre-shared keys, one a line; the first one sends");
  app.add_option("--wireguard-port", config.wireguard_port, "UDP port")->capture_default_str();
  app.add_option("--bgp-bird-config", config.bgp.bird_config, "BIRD 2 configuration to write");
  app.add_option("--bgp-bird-socket", config.bgp.bird_socket, "BIRD's control socket");
  app.add_option("--bgp-asn", config.bgp.as_number, "this node's autonomous system number");
  app.add_option("--bgp-peers", texts.bgp_peers, "ADDRESS=ASN, comma separated");
  app.add_option("--healthz-bind-address", texts.healthz, "IP:PORT of /healthz; default: none");
  app.add_option("--metrics-bind-address", texts.metrics, "IP:PORT of /metrics; default: none");
  app.add_option("-v,--v", verbosity, "log verbosity; from 2 on debug messages");
  app.add_flag("--cleanup", cleanup, "remove what the agent has made, and exit");
  if (std::optional<int> done = keelson::ParseFlags(app, argc, argv)) return *done;

  if (verbosity >= 2) keelson::log::SetLevel(keelson::log::Level::kDebug);
  Result<> done = Resolve(texts, config);
  if (done && !cleanup) done = CheckRequired(config);
  if (done && cleanup) done = agent::Cleanup(config);
  if (!done) {
    std::cerr << "kube-cni: " << done.error().message() << "\n";
    return 1;
  }
  return cleanup ? 0 : agent::RunAgent(config);
}
