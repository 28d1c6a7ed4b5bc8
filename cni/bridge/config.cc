#include "cni/bridge/config.h"

#include "cni/lib/json.h"

namespace keelson::cni {
namespace {

using boost::json::object;

// Fields that change what packets may pass: ignoring them would be worse than refusing.
Outcome<> RefuseUnsupported(const object& config) {
  for (const char* field : {"macspoofchk", "disableContainerInterface", "portIsolation"}) {
    ASSIGN_OR_RETURN(bool set, GetBool(config, field));
    if (set) return CniError{kUnsupportedField, std::string("unsupported field ") + field, ""};
  }
  ASSIGN_OR_RETURN(int vlan, GetInt(config, "vlan"));
  ASSIGN_OR_RETURN(const auto* trunk, GetArray(config, "vlanTrunk"));
  if (vlan != 0 || (trunk && !trunk->empty())) {
    return CniError{kUnsupportedField, "unsupported field vlan", "this plugin has no VLAN filtering"};
  }
  return {};
}

Outcome<> ReadMac(const Request& request, BridgeConfig& out) {
  std::string text;
  if (auto found = request.args.find("MAC"); found != request.args.end()) text = found->second;
  ASSIGN_OR_RETURN(const object* args, GetObject(request.config, "args"));
  if (args) {
    ASSIGN_OR_RETURN(const object* cni, GetObject(*args, "cni"));
    if (cni && cni->contains("mac")) {
      ASSIGN_OR_RETURN(text, GetString(*cni, "mac"));
    }
  }
  ASSIGN_OR_RETURN(const object* runtime, GetObject(request.config, "runtimeConfig"));
  if (runtime && runtime->contains("mac")) {
    ASSIGN_OR_RETURN(text, GetString(*runtime, "mac"));
  }
  if (text.empty()) return {};
  ASSIGN_OR_RETURN(out.mac, netlink::MacAddress::Parse(text));
  return {};
}

}  // namespace

Outcome<BridgeConfig> ReadBridgeConfig(const Request& request) {
  const object& config = request.config;
  BridgeConfig out;
  ASSIGN_OR_RETURN(std::string bridge, GetString(config, "bridge"));
  if (!bridge.empty()) out.bridge = bridge;
  ASSIGN_OR_RETURN(out.is_default_gateway, GetBool(config, "isDefaultGateway"));
  ASSIGN_OR_RETURN(out.is_gateway, GetBool(config, "isGateway"));
  out.is_gateway = out.is_gateway || out.is_default_gateway;
  ASSIGN_OR_RETURN(out.force_address, GetBool(config, "forceAddress"));
  ASSIGN_OR_RETURN(out.masquerade, GetBool(config, "ipMasq"));
  ASSIGN_OR_RETURN(out.hairpin, GetBool(config, "hairpinMode"));
  ASSIGN_OR_RETURN(out.promisc, GetBool(config, "promiscMode"));
  ASSIGN_OR_RETURN(out.mtu, GetInt(config, "mtu"));
  RETURN_IF_ERROR(RefuseUnsupported(config));
  if (out.hairpin && out.promisc) {
    return CniError{kInvalidConfig, "cannot set hairpin mode and promiscuous mode at the same time", ""};
  }
  RETURN_IF_ERROR(ReadMac(request, out));
  ASSIGN_OR_RETURN(const object* ipam, GetObject(config, "ipam"));
  if (ipam) {
    ASSIGN_OR_RETURN(out.ipam, GetString(*ipam, "type"));
  }
  ASSIGN_OR_RETURN(const object* dns, GetObject(config, "dns"));
  if (dns) {
    ASSIGN_OR_RETURN(out.dns, ParseDns(*dns));
  }
  return out;
}

}  // namespace keelson::cni
