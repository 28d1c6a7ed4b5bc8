// kube-cni: connects the pods of this node with those of all others.
#include <CLI/CLI.hpp>

#include "cni/agent/services.h"
#include "lib/base/signals.h"
#include "lib/component/flag_adder.h"
#include "lib/component/program.h"
#include "lib/event/loop.h"

namespace {

using keelson::Result;
namespace agent = keelson::cni::agent;

// Flags that need further parsing.
struct Texts {
  std::string cluster_cidr, mode = "auto", encryption = "none", bgp_peers, healthz, metrics,
                            network_policy = "on";
};

Result<> Resolve(const Texts& texts, agent::Config& config) {
  KEELSON_ASSIGN_OR_RETURN(config.cluster_cidrs, agent::ParseCidrs(texts.cluster_cidr));
  KEELSON_ASSIGN_OR_RETURN(config.mode, agent::ParseMode(texts.mode));
  KEELSON_ASSIGN_OR_RETURN(config.encryption, agent::ParseEncryption(texts.encryption));
  KEELSON_ASSIGN_OR_RETURN(config.bgp.peers, agent::ParseBgpPeers(texts.bgp_peers));
  KEELSON_ASSIGN_OR_RETURN(config.healthz, agent::ParseHostPort(texts.healthz));
  KEELSON_ASSIGN_OR_RETURN(config.metrics, agent::ParseHostPort(texts.metrics));
  KEELSON_RETURN_IF_ERROR(agent::ParseNetworkPolicy(texts.network_policy, config));
  return agent::Validate(config);
}

Result<> CheckRequired(const agent::Config& config) {
  for (auto [value, flag] :
       {std::pair(&config.kubeconfig, "--kubeconfig"), std::pair(&config.node_name, "--node-name"),
        std::pair(&config.conf_dir, "--cni-conf-dir")}) {
    if (value == &config.conf_dir && config.network_policy_only) continue;
    if (value->empty()) return keelson::Error(keelson::Code::kInvalid, std::string(flag) + " is required");
  }
  return {};
}

struct Flags {
  agent::Config config;
  Texts texts;
  bool cleanup = false;
  int verbosity = 0;
};

void AddFlags(CLI::App& app, Flags& flags) {
  const keelson::component::FlagAdder add{app};
  agent::Config& config = flags.config;
  add("--kubeconfig", config.kubeconfig, "How to reach the API server");
  add("--node-name", config.node_name, "This node's name");
  add("--cni-conf-dir", config.conf_dir, "Where the runtime reads CNI configurations");
  add("--cni-conf-name", config.conf_name, "File name of the one written there");
  add("--cni-data-dir", config.data_dir, "The dataDir of host-local");
  add("--cni-bin-dir", config.bin_dir,
      "Where the plugins are; portmap and bandwidth are chained if found there, without it always");
  add("--bridge", config.bridge, "Bridge that pods are joined to");
  add("--cluster-cidr", flags.texts.cluster_cidr, "CIDRs of all pods, comma separated");
  add("--mode", flags.texts.mode, "Way between nodes: auto, host-gw, vxlan or none");
  add("--mtu", config.mtu, "MTU of pods; 0: the uplink's less what encapsulation takes");
  add("--vxlan-port", config.vxlan_port, "UDP port of VXLAN");
  add("--vxlan-id", config.vxlan_id, "Network identifier of VXLAN");
  add("--vxlan-device", config.vxlan_device, "Name of the VXLAN device");
  add("--encryption", flags.texts.encryption, "Encryption between nodes: none, ipsec or wireguard");
  add("--ipsec-key-file", config.ipsec_key_file, "Pre-shared keys, one a line; the first one sends");
  add("--wireguard-port", config.wireguard_port, "UDP port of WireGuard");
  add("--bgp-bird-config", config.bgp.bird_config, "BIRD 2 configuration to write");
  add("--bgp-bird-socket", config.bgp.bird_socket, "BIRD's control socket");
  add("--bgp-asn", config.bgp.as_number, "This node's autonomous system number");
  add("--bgp-peers", flags.texts.bgp_peers, "Peers, ADDRESS=ASN, comma separated");
  add("--network-policy", flags.texts.network_policy,
      "Whether NetworkPolicies are enforced: on, off, or only, beside another CNI");
  add("--network-policy-log-group", config.policy_log_group,
      "Log packets that policies deny to this nfnetlink_log group; 0: no");
  add("--network-policy-log-rate", config.policy_log_rate,
      "The most packets a second that are logged, of pods with the same policies");
  add("--healthz-bind-address", flags.texts.healthz, "IP:PORT of /healthz; empty: none");
  add("--metrics-bind-address", flags.texts.metrics, "IP:PORT of /metrics; empty: none");
  add("-v,--v", flags.verbosity, "Log verbosity; 4 and above show debugging messages");
  add("--cleanup", flags.cleanup, "Remove what the agent has made, and exit");
}

Result<int> Run(Flags& flags) {
  KEELSON_RETURN_IF_ERROR(keelson::component::StartLogging({.verbosity = flags.verbosity}));
  KEELSON_RETURN_IF_ERROR(Resolve(flags.texts, flags.config));
  if (flags.cleanup) {
    KEELSON_RETURN_IF_ERROR(agent::Cleanup(flags.config));
    return 0;
  }
  KEELSON_RETURN_IF_ERROR(CheckRequired(flags.config));
  return agent::RunAgent(flags.config);
}

}  // namespace

int main(int argc, char** argv) {
  keelson::BlockSignals();
  keelson::event::LoopsOfProcess loops;
  CLI::App app{"kube-cni connects the pods of this node with those of the cluster's other nodes", "kube-cni"};
  Flags flags;
  AddFlags(app, flags);
  if (std::optional<int> done = keelson::component::ParseProgram(app, argc, argv)) return *done;
  return keelson::component::ExitCode(Run(flags), "Cannot start");
}
