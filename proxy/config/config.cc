#include "proxy/config/config.h"

#include <charconv>

#include "proxy/config/document.h"

namespace keelson::proxy {
namespace {

Error Bad(const std::string& what) { return Error(Code::kInvalid, what); }

std::chrono::seconds WholeSeconds(Document::Duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time);
}

ConntrackLimits LimitsOf(const Document& d) {
  return {.max_per_core = d.conntrack.max_per_core,
          .min = d.conntrack.min,
          .tcp_established = WholeSeconds(d.conntrack.tcp_established_timeout),
          .tcp_close_wait = WholeSeconds(d.conntrack.tcp_close_wait_timeout),
          .udp = WholeSeconds(d.conntrack.udp_timeout),
          .udp_stream = WholeSeconds(d.conntrack.udp_stream_timeout),
          .tcp_be_liberal = d.conntrack.tcp_be_liberal};
}

// Of upstream's modes the settings come from the section of the one that was asked for. Mode ipvs masquerades
// as mode iptables does.
template <typename Masquerade, typename Section>
void Adopt(const Masquerade& masquerade, const Section& section, Config& config) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  config.masquerade_all = masquerade.masquerade_all;
  config.masquerade_bit = masquerade.masquerade_bit;
  config.sync_period = duration_cast<milliseconds>(section.sync_period);
  config.min_sync_period = duration_cast<milliseconds>(section.min_sync_period);
}

Result<> AdoptIpvs(const Document& d, Config& config) {
  auto& out = config.ipvs;
  if (!d.ipvs.scheduler.empty()) out.scheduler = d.ipvs.scheduler;
  for (const std::string& text : d.ipvs.exclude_cidrs) {
    KEELSON_ASSIGN_OR_RETURN(IpPrefix cidr, IpPrefix::Parse(text));
    out.excluded.push_back(cidr.Masked());
  }
  out.strict_arp = d.ipvs.strict_arp;
  out.tcp = WholeSeconds(d.ipvs.tcp_timeout);
  out.tcp_fin = WholeSeconds(d.ipvs.tcp_fin_timeout);
  out.udp = WholeSeconds(d.ipvs.udp_timeout);
  return {};
}

// The document without what a running proxy can change.
std::string FixedOf(Document d, const Config& config) {
  const Document plain;
  d.mode = plain.mode;
  d.nftables = plain.nftables;
  d.iptables = plain.iptables;
  d.ipvs = plain.ipvs;
  return ToYaml(d) + std::to_string(config.sync_period.count()) + " " +
         std::to_string(config.min_sync_period.count());
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
    KEELSON_ASSIGN_OR_RETURN(IpPrefix cidr, IpPrefix::Parse(text.substr(begin, end - begin)));
    out.push_back(cidr.Masked());
    begin = end + 1;
  }
  return out;
}

Result<Config> Decide(const Document& d) {
  std::vector<std::string> problems = Problems(d);
  if (!problems.empty()) {
    std::string text;
    for (const std::string& problem : problems) text += (text.empty() ? "" : ", ") + problem;
    return Bad(problems.size() == 1 ? text : "[" + text + "]");
  }
  Config config{.kubeconfig = d.client.kubeconfig, .hostname = d.hostname_override, .asked_mode = d.mode};
  if (d.mode == "nftables" || d.mode == "ebpf") {
    config.mode = d.mode;
    Adopt(d.nftables, d.nftables, config);
  } else if (d.mode == "ipvs") {
    config.mode = "ipvs";
    Adopt(d.iptables, d.ipvs, config);
  } else {
    Adopt(d.iptables, d.iptables, config);
  }
  KEELSON_RETURN_IF_ERROR(AdoptIpvs(d, config));
  config.detect_local_mode = d.detect_local_mode.empty() ? "ClusterCIDR" : d.detect_local_mode;
  if (config.detect_local_mode == "ClusterCIDR") {
    KEELSON_ASSIGN_OR_RETURN(config.cluster_cidrs, ParseCidrs(d.cluster_cidr));
  } else if (config.detect_local_mode == "BridgeInterface") {
    config.pod_bridge = d.detect_local.bridge_interface;
  } else if (config.detect_local_mode == "InterfaceNamePrefix") {
    config.pod_interface_prefix = d.detect_local.interface_name_prefix;
  }
  Result<IpAddress> bind = IpAddress::Parse(d.bind_address);
  if (bind && !bind->IsUnspecified()) config.node_ip = *bind;
  config.nodeport_addresses = d.node_port_addresses;
  config.healthz_address = d.healthz_bind_address;
  config.metrics_address = d.metrics_bind_address;
  config.address_hard_fail = d.bind_address_hard_fail;
  config.conntrack = LimitsOf(d);
  config.oom_score_adj = d.oom_score_adj;
  config.feature_gates = d.feature_gates;
  config.configz = ToConfigz(d);
  config.fixed = FixedOf(d, config);
  return config;
}

}  // namespace keelson::proxy
