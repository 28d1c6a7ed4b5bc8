#include "proxy/config.h"

#include <yaml-cpp/yaml.h>

#include <charconv>

#include "lib/base/file.h"

namespace keelson::proxy {
namespace {

Error Bad(const std::string& what) { return Error(Code::kInvalid, what); }

Result<> SetDuration(const YAML::Node& node, std::chrono::milliseconds& out) {
  if (!node || node.IsNull()) return {};
  ASSIGN_OR_RETURN(std::chrono::milliseconds parsed, ParseDuration(node.as<std::string>()));
  if (parsed.count() > 0) out = parsed;
  return {};
}

template <typename T>
void Set(const YAML::Node& node, T& out) {
  if (node && !node.IsNull()) out = node.as<T>();
}

void SetText(const YAML::Node& node, std::string& out) {
  if (node && !node.IsNull() && !node.as<std::string>().empty()) out = node.as<std::string>();
}

Result<> Overlay(const YAML::Node& root, Config& config) {
  if (!root.IsMap() || root["kind"].as<std::string>("") != "KubeProxyConfiguration") {
    return Bad("not a KubeProxyConfiguration");
  }
  SetText(root["clientConnection"]["kubeconfig"], config.kubeconfig);
  SetText(root["hostnameOverride"], config.hostname);
  SetText(root["mode"], config.mode);
  SetText(root["detectLocalMode"], config.detect_local_mode);
  SetText(root["healthzBindAddress"], config.healthz_address);
  SetText(root["metricsBindAddress"], config.metrics_address);
  std::string cidrs;
  SetText(root["clusterCIDR"], cidrs);
  if (!cidrs.empty()) {
    ASSIGN_OR_RETURN(config.cluster_cidrs, ParseCidrs(cidrs));
  }
  Set(root["nodePortAddresses"], config.nodeport_addresses);
  const YAML::Node nftables = root["nftables"];
  Set(nftables["masqueradeAll"], config.masquerade_all);
  Set(nftables["masqueradeBit"], config.masquerade_bit);
  RETURN_IF_ERROR(SetDuration(nftables["minSyncPeriod"], config.min_sync_period));
  return SetDuration(nftables["syncPeriod"], config.sync_period);
}

}  // namespace

Result<HostPort> ParseHostPort(const std::string& text, uint16_t default_port) {
  HostPort out{.port = default_port};
  std::string host = text, port;
  auto colon = text.rfind(':');
  bool bare_v6 = colon != std::string::npos && text.find(':') != colon && text[0] != '[';
  if (colon != std::string::npos && !bare_v6 && (text[0] != '[' || text[colon - 1] == ']')) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (!host.empty()) {
    if (!IpAddress::Parse(host)) return Bad("invalid address: " + text);
    out.host = host;
  }
  if (!port.empty()) {
    int number = -1;
    auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || end != port.data() + port.size() || number < 0 || number > 65535) {
      return Bad("invalid port: " + text);
    }
    out.port = static_cast<uint16_t>(number);
  }
  return out;
}

Result<std::vector<IpPrefix>> ParseCidrs(const std::string& text) {
  std::vector<IpPrefix> out;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    ASSIGN_OR_RETURN(IpPrefix cidr, IpPrefix::Parse(text.substr(begin, end - begin)));
    out.push_back(cidr.Masked());
    begin = end + 1;
  }
  return out;
}

Result<std::chrono::milliseconds> ParseDuration(const std::string& text) {
  double total_ms = 0;
  if (text == "0") return std::chrono::milliseconds(0);
  const char* at = text.data();
  const char* end = at + text.size();
  if (at == end) return Bad("invalid duration: " + text);
  while (at != end) {
    double number = 0;
    auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) return Bad("invalid duration: " + text);
    std::string_view rest(next, static_cast<size_t>(end - next));
    double unit = rest.starts_with("ms")  ? 1
                  : rest.starts_with("s") ? 1e3
                  : rest.starts_with("m") ? 60e3
                  : rest.starts_with("h") ? 3600e3
                                          : 0;
    if (unit == 0) return Bad("invalid duration: " + text);
    total_ms += number * unit;
    at = next + (unit == 1 ? 2 : 1);
  }
  return std::chrono::milliseconds(static_cast<int64_t>(total_ms));
}

Result<> ParseConfig(const std::string& yaml, Config& config) {
  try {
    return Overlay(YAML::Load(yaml), config);
  } catch (const YAML::Exception& e) {
    return Bad(e.what());
  }
}

Result<> ReadConfigFile(const std::string& path, Config& config) {
  ASSIGN_OR_RETURN(std::string yaml, ReadFile(path));
  Result<> parsed = ParseConfig(yaml, config);
  if (!parsed) return parsed.error().Wrap(path);
  return {};
}

Result<> Validate(const Config& config) {
  if (config.mode != "nftables") return Bad("unknown proxy mode: " + config.mode + " (known: nftables)");
  if (config.masquerade_bit < 0 || config.masquerade_bit > 31) return Bad("masquerade bit must be 0 to 31");
  if (config.detect_local_mode != "ClusterCIDR" && config.detect_local_mode != "NodeCIDR") {
    return Bad("unknown detect-local mode: " + config.detect_local_mode + " (known: ClusterCIDR, NodeCIDR)");
  }
  for (const std::string& address : config.nodeport_addresses) {
    if (address != "primary") RETURN_IF_ERROR(IpPrefix::Parse(address));
    if (address == "primary" && config.nodeport_addresses.size() > 1) {
      return Bad("nodeport addresses: \"primary\" stands alone");
    }
  }
  return {};
}

}  // namespace keelson::proxy
