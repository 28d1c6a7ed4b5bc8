#include "cni/bridge/config.h"

#include <set>

#include "cni/lib/json.h"

namespace keelson::cni {
namespace {

using boost::json::object;

CniError Bad(std::string message) { return {kInvalidConfig, std::move(message), ""}; }

// {"id": 7} or {"minID": 10, "maxID": 20}, or both.
Outcome<> AddTrunkItem(const object& item, std::set<int>& out) {
  auto valid = [](int id) { return id > 0 && id <= 4094; };
  KEELSON_ASSIGN_OR_RETURN(int low, GetInt(item, "minID", -1));
  KEELSON_ASSIGN_OR_RETURN(int high, GetInt(item, "maxID", -1));
  KEELSON_ASSIGN_OR_RETURN(int single, GetInt(item, "id", -1));
  if (item.contains("minID") != item.contains("maxID")) {
    return Bad(std::string("minID and maxID should be configured simultaneously, ") +
               (item.contains("minID") ? "maxID" : "minID") + " is missing");
  }
  if (item.contains("minID")) {
    if (!valid(low)) return Bad("incorrect trunk minID parameter");
    if (!valid(high)) return Bad("incorrect trunk maxID parameter");
    if (high < low) return Bad("minID is greater than maxID in trunk parameter");
    for (int id = low; id <= high; ++id) out.insert(id);
  }
  if (item.contains("id")) {
    if (!valid(single)) return Bad("incorrect trunk id parameter");
    out.insert(single);
  }
  return {};
}

Outcome<> ReadVlans(const object& config, BridgeConfig& out) {
  KEELSON_ASSIGN_OR_RETURN(out.vlan, GetInt(config, "vlan"));
  if (out.vlan < 0 || out.vlan > 4094) {
    return Bad("invalid VLAN ID " + std::to_string(out.vlan) + " (must be between 0 and 4094)");
  }
  KEELSON_ASSIGN_OR_RETURN(auto items, GetObjects(config, "vlanTrunk"));
  std::set<int> trunk;
  for (const object* item : items) KEELSON_RETURN_IF_ERROR(AddTrunkItem(*item, trunk));
  out.trunk.assign(trunk.begin(), trunk.end());
  if (out.vlan > 0 && !out.trunk.empty()) return Bad("cannot set vlan and vlanTrunk at the same time");
  KEELSON_ASSIGN_OR_RETURN(out.preserve_default_vlan, GetBool(config, "preserveDefaultVlan", true));
  return {};
}

// Later sources win: CNI_ARGS, args.cni, runtimeConfig.
Outcome<> ReadMac(const Request& request, BridgeConfig& out) {
  std::string text;
  if (auto found = request.args.find("MAC"); found != request.args.end()) text = found->second;
  KEELSON_ASSIGN_OR_RETURN(const object* args, CniArgs(request.config));
  KEELSON_ASSIGN_OR_RETURN(const object* runtime, RuntimeConfig(request.config));
  for (const object* json : {args, runtime}) {
    if (!json) continue;
    KEELSON_ASSIGN_OR_RETURN(std::string mac, GetString(*json, "mac"));
    if (!mac.empty()) text = mac;
  }
  if (text.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(out.mac, netlink::MacAddress::Parse(text));
  return {};
}

// The runtime's settings (capability dns) override the configuration's.
Outcome<> ReadDns(const object& config, BridgeConfig& out) {
  KEELSON_ASSIGN_OR_RETURN(const object* dns, GetObject(config, "dns"));
  if (dns) {
    KEELSON_ASSIGN_OR_RETURN(out.dns, ParseDns(*dns));
  }
  KEELSON_ASSIGN_OR_RETURN(const object* runtime, RuntimeConfig(config));
  if (!runtime) return {};
  KEELSON_ASSIGN_OR_RETURN(const object* given, GetObject(*runtime, "dns"));
  if (!given) return {};
  Dns from_runtime;
  KEELSON_ASSIGN_OR_RETURN(from_runtime.nameservers, GetStrings(*given, "servers"));
  KEELSON_ASSIGN_OR_RETURN(from_runtime.search, GetStrings(*given, "searches"));
  KEELSON_ASSIGN_OR_RETURN(from_runtime.options, GetStrings(*given, "options"));
  if (!from_runtime.empty()) out.dns = std::move(from_runtime);
  return {};
}

}  // namespace

Outcome<BridgeConfig> ReadBridgeConfig(const Request& request) {
  const object& config = request.config;
  BridgeConfig out;
  KEELSON_ASSIGN_OR_RETURN(std::string bridge, GetString(config, "bridge"));
  if (!bridge.empty()) out.bridge = bridge;
  KEELSON_ASSIGN_OR_RETURN(out.is_default_gateway, GetBool(config, "isDefaultGateway"));
  KEELSON_ASSIGN_OR_RETURN(out.is_gateway, GetBool(config, "isGateway"));
  out.is_gateway = out.is_gateway || out.is_default_gateway;
  KEELSON_ASSIGN_OR_RETURN(out.force_address, GetBool(config, "forceAddress"));
  KEELSON_ASSIGN_OR_RETURN(out.masquerade, GetBool(config, "ipMasq"));
  KEELSON_ASSIGN_OR_RETURN(out.hairpin, GetBool(config, "hairpinMode"));
  KEELSON_ASSIGN_OR_RETURN(out.promisc, GetBool(config, "promiscMode"));
  KEELSON_ASSIGN_OR_RETURN(out.mtu, GetInt(config, "mtu"));
  if (out.mtu < 0) return Bad("invalid MTU " + std::to_string(out.mtu));
  if (out.hairpin && out.promisc) {
    return Bad("cannot set hairpin mode and promiscuous mode at the same time");
  }
  KEELSON_RETURN_IF_ERROR(ReadVlans(config, out));
  KEELSON_ASSIGN_OR_RETURN(out.check_mac, GetBool(config, "macspoofchk"));
  KEELSON_ASSIGN_OR_RETURN(out.isolated, GetBool(config, "portIsolation"));
  KEELSON_ASSIGN_OR_RETURN(out.leave_down, GetBool(config, "disableContainerInterface"));
  KEELSON_ASSIGN_OR_RETURN(bool detect_duplicates, GetBool(config, "enabledad"));
  // Refuse what we cannot do: this setting decides whether an address may be used.
  if (detect_duplicates) return CniError{kUnsupportedField, "unsupported field enabledad", ""};
  KEELSON_RETURN_IF_ERROR(ReadMac(request, out));
  KEELSON_ASSIGN_OR_RETURN(const object* ipam, GetObject(config, "ipam"));
  if (ipam) {
    KEELSON_ASSIGN_OR_RETURN(out.ipam, GetString(*ipam, "type"));
  }
  if (!out.ipam.empty() && out.leave_down) {
    return Bad("cannot use IPAM when DisableContainerInterface flag is set");
  }
  KEELSON_RETURN_IF_ERROR(ReadDns(config, out));
  return out;
}

}  // namespace keelson::cni
