#include "cni/lib/result.h"

#include <algorithm>

#include "cni/lib/json.h"

namespace keelson::cni {
namespace {

using boost::json::array;
using boost::json::object;

bool HasIpVersion(std::string_view version) { return version.starts_with("0."); }  // dropped in 1.0.0
bool HasMtu(std::string_view version) { return version == "1.1.0"; }

object ToJson(const Interface& interface, std::string_view version) {
  object out;
  out["name"] = interface.name;
  if (!interface.mac.empty()) out["mac"] = interface.mac;
  if (interface.mtu > 0 && HasMtu(version)) out["mtu"] = interface.mtu;
  if (!interface.sandbox.empty()) out["sandbox"] = interface.sandbox;
  if (!HasMtu(version)) return out;
  if (!interface.socket_path.empty()) out["socketPath"] = interface.socket_path;
  if (!interface.pci_id.empty()) out["pciID"] = interface.pci_id;
  return out;
}

object ToJson(const IpConfig& ip, std::string_view version) {
  object out;
  if (HasIpVersion(version)) out["version"] = ip.address.is_v4() ? "4" : "6";
  if (ip.interface) out["interface"] = *ip.interface;
  out["address"] = ip.address.ToString();
  if (ip.gateway) out["gateway"] = ip.gateway->ToString();
  return out;
}

object ToJson(const RouteConfig& route, std::string_view version) {
  object out;
  out["dst"] = route.destination.ToString();
  if (route.gateway) out["gw"] = route.gateway->ToString();
  if (!HasMtu(version)) return out;
  if (route.mtu > 0) out["mtu"] = route.mtu;
  if (route.advmss > 0) out["advmss"] = route.advmss;
  if (route.priority > 0) out["priority"] = route.priority;
  if (route.table > 0) out["table"] = route.table;
  if (route.scope) out["scope"] = *route.scope;
  return out;
}

object ToJson(const Dns& dns) {
  object out;
  auto list = [&](const char* name, const std::vector<std::string>& items) {
    if (!items.empty()) out[name] = array(items.begin(), items.end());
  };
  list("nameservers", dns.nameservers);
  if (!dns.domain.empty()) out["domain"] = dns.domain;
  list("search", dns.search);
  list("options", dns.options);
  return out;
}

Outcome<std::optional<IpAddress>> GetAddress(const object& json, std::string_view field) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, GetString(json, field));
  if (text.empty()) return std::optional<IpAddress>();
  KEELSON_ASSIGN_OR_RETURN(IpAddress address, IpAddress::Parse(text));
  return std::optional<IpAddress>(address);
}

Outcome<IpConfig> ParseIp(const object& json) {
  IpConfig ip;
  KEELSON_ASSIGN_OR_RETURN(std::string address, GetString(json, "address"));
  KEELSON_ASSIGN_OR_RETURN(ip.address, IpPrefix::Parse(address));
  KEELSON_ASSIGN_OR_RETURN(ip.gateway, GetAddress(json, "gateway"));
  KEELSON_ASSIGN_OR_RETURN(int interface, GetInt(json, "interface", -1));
  if (interface >= 0) ip.interface = interface;
  return ip;
}

}  // namespace

const std::vector<std::string>& SupportedVersions() {
  static const std::vector<std::string> versions = {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};
  return versions;
}

bool IsSupported(std::string_view version) {
  const auto& versions = SupportedVersions();
  return std::find(versions.begin(), versions.end(), version) != versions.end();
}

object ToJson(const AddResult& result, std::string_view version) {
  object out;
  out["cniVersion"] = version;
  array interfaces, ips, routes;
  for (const auto& interface : result.interfaces) interfaces.push_back(ToJson(interface, version));
  for (const auto& ip : result.ips) ips.push_back(ToJson(ip, version));
  for (const auto& route : result.routes) routes.push_back(ToJson(route, version));
  if (!interfaces.empty()) out["interfaces"] = std::move(interfaces);
  if (!ips.empty()) out["ips"] = std::move(ips);
  if (!routes.empty()) out["routes"] = std::move(routes);
  out["dns"] = ToJson(result.dns);
  return out;
}

Outcome<RouteConfig> ParseRoute(const object& json) {
  RouteConfig route;
  KEELSON_ASSIGN_OR_RETURN(std::string destination, GetString(json, "dst"));
  KEELSON_ASSIGN_OR_RETURN(route.destination, IpPrefix::Parse(destination));
  KEELSON_ASSIGN_OR_RETURN(route.gateway, GetAddress(json, "gw"));
  KEELSON_ASSIGN_OR_RETURN(route.mtu, GetInt(json, "mtu"));
  KEELSON_ASSIGN_OR_RETURN(route.advmss, GetInt(json, "advmss"));
  KEELSON_ASSIGN_OR_RETURN(route.priority, GetInt(json, "priority"));
  KEELSON_ASSIGN_OR_RETURN(route.table, GetInt(json, "table"));
  KEELSON_ASSIGN_OR_RETURN(int scope, GetInt(json, "scope", -1));
  if (scope >= 0) route.scope = scope;
  return route;
}

Outcome<Dns> ParseDns(const object& json) {
  Dns dns;
  KEELSON_ASSIGN_OR_RETURN(dns.nameservers, GetStrings(json, "nameservers"));
  KEELSON_ASSIGN_OR_RETURN(dns.domain, GetString(json, "domain"));
  KEELSON_ASSIGN_OR_RETURN(dns.search, GetStrings(json, "search"));
  KEELSON_ASSIGN_OR_RETURN(dns.options, GetStrings(json, "options"));
  return dns;
}

Outcome<AddResult> ParseResult(const object& json) {
  AddResult result;
  KEELSON_ASSIGN_OR_RETURN(auto interfaces, GetObjects(json, "interfaces"));
  for (const object* item : interfaces) {
    Interface interface;
    KEELSON_ASSIGN_OR_RETURN(interface.name, GetString(*item, "name"));
    KEELSON_ASSIGN_OR_RETURN(interface.mac, GetString(*item, "mac"));
    KEELSON_ASSIGN_OR_RETURN(interface.sandbox, GetString(*item, "sandbox"));
    KEELSON_ASSIGN_OR_RETURN(interface.mtu, GetInt(*item, "mtu"));
    KEELSON_ASSIGN_OR_RETURN(interface.socket_path, GetString(*item, "socketPath"));
    KEELSON_ASSIGN_OR_RETURN(interface.pci_id, GetString(*item, "pciID"));
    result.interfaces.push_back(std::move(interface));
  }
  KEELSON_ASSIGN_OR_RETURN(auto ips, GetObjects(json, "ips"));
  for (const object* item : ips) {
    KEELSON_ASSIGN_OR_RETURN(IpConfig ip, ParseIp(*item));
    result.ips.push_back(std::move(ip));
  }
  KEELSON_ASSIGN_OR_RETURN(auto routes, GetObjects(json, "routes"));
  for (const object* item : routes) {
    KEELSON_ASSIGN_OR_RETURN(RouteConfig route, ParseRoute(*item));
    result.routes.push_back(std::move(route));
  }
  KEELSON_ASSIGN_OR_RETURN(const object* dns, GetObject(json, "dns"));
  if (dns) {
    KEELSON_ASSIGN_OR_RETURN(result.dns, ParseDns(*dns));
  }
  return result;
}

}  // namespace keelson::cni
