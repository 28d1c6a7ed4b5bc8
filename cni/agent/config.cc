#include "cni/agent/config.h"

#include <net/if.h>

#include <charconv>

namespace keelson::cni::agent {
namespace {

Error Bad(std::string what) { return Error(Code::kInvalid, std::move(what)); }

template <typename T>
bool ParseNumber(std::string_view text, T& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

template <typename Each>
Result<> ForEachItem(std::string_view text, Each each) {
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    KEELSON_RETURN_IF_ERROR(each(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return {};
}

Result<> CheckLinkName(const std::string& name, std::string_view flag) {
  if (name.empty() || name.size() >= IFNAMSIZ || name.find_first_of("/ :") != std::string::npos) {
    return Bad(std::string(flag) + ": not a name of a network interface: \"" + name + "\"");
  }
  return {};
}

Result<> CheckEncryption(const Config& config) {
  if (config.encryption == Encryption::kNone) return {};
  std::string name(ToString(config.encryption));
  if (config.mode == Mode::kVxlan || config.mode == Mode::kNone) {
    return Bad("--encryption " + name + " carries pods' packets itself: it goes with --mode auto or host-gw");
  }
  if (config.encryption == Encryption::kIpsec && config.ipsec_key_file.empty()) {
    return Bad("--encryption ipsec needs --ipsec-key-file");
  }
  return {};
}

Result<> CheckBgp(const BgpConfig& bgp) {
  if (bgp.bird_config.empty()) {
    if (!bgp.peers.empty() || !bgp.bird_socket.empty() || bgp.as_number != 0) {
      return Bad("BGP settings need --bgp-bird-config");
    }
    return {};
  }
  if (bgp.bird_socket.empty()) return Bad("--bgp-bird-config needs --bgp-bird-socket");
  if (bgp.as_number == 0) return Bad("--bgp-bird-config needs --bgp-asn");
  if (bgp.bird_config.find_first_of("\"\n") != std::string::npos) {
    return Bad("--bgp-bird-config: no quotes in the path, please");
  }
  return {};
}

}  // namespace

std::string_view ToString(Mode mode) {
  switch (mode) {
    case Mode::kAuto:
      return "auto";
    case Mode::kHostGw:
      return "host-gw";
    case Mode::kVxlan:
      return "vxlan";
    case Mode::kNone:
      break;
  }
  return "none";
}

std::string_view ToString(Encryption encryption) {
  switch (encryption) {
    case Encryption::kIpsec:
      return "ipsec";
    case Encryption::kWireguard:
      return "wireguard";
    case Encryption::kNone:
      break;
  }
  return "none";
}

Result<Mode> ParseMode(std::string_view text) {
  for (Mode mode : {Mode::kAuto, Mode::kHostGw, Mode::kVxlan, Mode::kNone}) {
    if (text == ToString(mode)) return mode;
  }
  return Bad("unknown mode \"" + std::string(text) + "\" (known: auto, host-gw, vxlan, none)");
}

Result<Encryption> ParseEncryption(std::string_view text) {
  for (Encryption e : {Encryption::kNone, Encryption::kIpsec, Encryption::kWireguard}) {
    if (text == ToString(e)) return e;
  }
  return Bad("unknown encryption \"" + std::string(text) + "\" (known: none, ipsec, wireguard)");
}

Result<std::vector<IpPrefix>> ParseCidrs(std::string_view text) {
  std::vector<IpPrefix> out;
  KEELSON_RETURN_IF_ERROR(ForEachItem(text, [&](std::string_view item) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(IpPrefix cidr, IpPrefix::Parse(item));
    out.push_back(cidr.Masked());
    return {};
  }));
  return out;
}

Result<std::vector<BgpPeer>> ParseBgpPeers(std::string_view text) {
  std::vector<BgpPeer> out;
  KEELSON_RETURN_IF_ERROR(ForEachItem(text, [&](std::string_view item) -> Result<> {
    size_t equals = item.find('=');
    BgpPeer peer;
    if (equals == std::string_view::npos || !ParseNumber(item.substr(equals + 1), peer.as_number) ||
        peer.as_number == 0) {
      return Bad("invalid BGP peer \"" + std::string(item) + "\": ADDRESS=ASN is wanted");
    }
    KEELSON_ASSIGN_OR_RETURN(peer.address, IpAddress::Parse(item.substr(0, equals)));
    out.push_back(peer);
    return {};
  }));
  return out;
}

Result<HostPort> ParseHostPort(std::string_view text) {
  HostPort out;
  if (text.empty()) return out;
  size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (colon == std::string_view::npos || !ParseNumber(text.substr(colon + 1), out.port)) {
    return Bad("invalid address \"" + std::string(text) + "\": IP:PORT is wanted");
  }
  if (host.empty()) host = "0.0.0.0";
  KEELSON_RETURN_IF_ERROR(IpAddress::Parse(host));
  out.host = host;
  return out;
}

Result<> ParseNetworkPolicy(std::string_view text, Config& config) {
  if (text != "on" && text != "off" && text != "only") {
    return Bad("unknown value \"" + std::string(text) + "\" of --network-policy (known: on, off, only)");
  }
  config.network_policy = text != "off";
  config.network_policy_only = text == "only";
  return {};
}

Result<> Validate(const Config& config) {
  if (config.policy_log_group > 0 && (config.policy_log_rate == 0 || !config.network_policy)) {
    return Error(
        Code::kInvalid,
        "--network-policy-log-group needs --network-policy=on and a --network-policy-log-rate above 0");
  }
  if (config.network_policy_only &&
      (config.encryption != Encryption::kNone || !config.bgp.bird_config.empty())) {
    return Bad(
        "--network-policy=only leaves the ways between nodes to another program: no --encryption, no BGP");
  }
  if (config.conf_name.empty() || config.conf_name.find('/') != std::string::npos) {
    return Bad("--cni-conf-name is a file name, not \"" + config.conf_name + "\"");
  }
  if (config.mtu != 0 && (config.mtu < 576 || config.mtu > 65535)) return Bad("--mtu must be 576 to 65535");
  if (config.vxlan_id >= 1u << 24) return Bad("--vxlan-id must be below 16777216");
  if (config.vxlan_port == 0) return Bad("--vxlan-port must not be 0");
  KEELSON_RETURN_IF_ERROR(CheckLinkName(config.bridge, "--bridge"));
  KEELSON_RETURN_IF_ERROR(CheckLinkName(config.vxlan_device, "--vxlan-device"));
  KEELSON_RETURN_IF_ERROR(CheckEncryption(config));
  return CheckBgp(config.bgp);
}

}  // namespace keelson::cni::agent
