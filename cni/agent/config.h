// kube-cni's settings, from its flags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::cni::agent {

enum class Mode { kAuto, kHostGw, kVxlan, kNone };
enum class Encryption { kNone, kIpsec, kWireguard };
std::string_view ToString(Mode mode);
std::string_view ToString(Encryption encryption);
Result<Mode> ParseMode(std::string_view text);
Result<Encryption> ParseEncryption(std::string_view text);

struct BgpPeer {
  IpAddress address;
  uint32_t as_number = 0;
  bool operator==(const BgpPeer&) const = default;
};

struct BgpConfig {
  std::string bird_config;  // empty: no BGP
  std::string bird_socket;
  uint32_t as_number = 0;
  std::vector<BgpPeer> peers;
};

struct HostPort {
  std::string host;  // empty: no server
  uint16_t port = 0;
};

struct Config {
  std::string kubeconfig;
  std::string node_name;
  std::string conf_dir;
  std::string conf_name = "10-keelson.conflist";
  std::string data_dir = "/var/lib/cni/networks";
  std::string bin_dir;  // empty: plugins count as installed
  std::string bridge = "keelson0";
  std::vector<IpPrefix> cluster_cidrs;
  Mode mode = Mode::kAuto;
  int mtu = 0;  // MTU of pods; 0: detect it
  uint16_t vxlan_port = 8472;
  uint32_t vxlan_id = 1;
  std::string vxlan_device = "keelson.vx";
  Encryption encryption = Encryption::kNone;
  std::string ipsec_key_file;
  uint16_t wireguard_port = 51871;
  std::string wireguard_device = "keelson.wg";
  BgpConfig bgp;
  HostPort healthz, metrics;
  bool network_policy = true;        // enforce NetworkPolicies
  bool network_policy_only = false;  // and do nothing else: another program connects the pods
  // Packets that policies deny go to this nfnetlink_log group, so many a second of each chain. 0: no group.
  uint16_t policy_log_group = 0;
  uint32_t policy_log_rate = 10;

  std::string ConflistPath() const { return conf_dir + "/" + conf_name; }
};

// Parses "10.0.0.0/16,fd00::/48"; clears host bits.
Result<std::vector<IpPrefix>> ParseCidrs(std::string_view text);
// "10.0.0.1=64512,10.0.0.2=64513"
Result<std::vector<BgpPeer>> ParseBgpPeers(std::string_view text);
// "127.0.0.1:10258", "[::1]:10258"; empty: no server.
Result<HostPort> ParseHostPort(std::string_view text);
// "on", "off" or "only", into the two fields.
Result<> ParseNetworkPolicy(std::string_view text, Config& config);
// Checks settings that depend on each other.
Result<> Validate(const Config& config);

}  // namespace keelson::cni::agent
