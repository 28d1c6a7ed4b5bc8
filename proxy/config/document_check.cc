#include <fmt/format.h>

#include "lib/api/duration.h"
#include "proxy/config/config.h"
#include "proxy/config/document.h"

namespace keelson::proxy {
namespace {

constexpr char kNotNegative[] = "must be greater than or equal to 0";

// One look at a document; problems are collected in upstream's order and words.
class Checker {
 public:
  explicit Checker(const Document& d) : d_(d) {}

  std::vector<std::string> Run() {
    MasqueradeBit("KubeProxyIPTablesConfiguration", d_.iptables.masquerade_bit);
    if (d_.mode == "nftables" || d_.mode == "ebpf") {
      MasqueradeBit("KubeProxyNFTablesConfiguration", d_.nftables.masquerade_bit);
    }
    if (d_.mode == "ipvs") Ipvs();
    Conntrack();
    Modes();
    if (d_.client.burst < 0) Invalid("ClientConnection.Burst", d_.client.burst, kNotNegative);
    if (d_.oom_score_adj < -1000 || d_.oom_score_adj > 1000) {
      Invalid("OOMScoreAdj", d_.oom_score_adj, "must be within the range [-1000, 1000]");
    }
    if (d_.config_sync_period.count() <= 0) {
      Invalid("ConfigSyncPeriod", d_.config_sync_period, "must be greater than 0");
    }
    if (!IpAddress::Parse(d_.bind_address)) {
      Invalid("BindAddress", d_.bind_address, "not a valid textual representation of an IP address");
    }
    if (!d_.healthz_bind_address.empty()) Address("HealthzBindAddress", d_.healthz_bind_address);
    if (!d_.metrics_bind_address.empty()) Address("MetricsBindAddress", d_.metrics_bind_address);
    Periods();
    ClusterCidrs();
    NodePortAddresses();
    return std::move(out_);
  }

 private:
  static std::string Text(const std::string& value) { return "\"" + value + "\""; }
  static std::string Text(int value) { return std::to_string(value); }
  static std::string Text(Document::Duration value) { return Text(api::FormatGoDuration(value.count())); }
  template <typename T>
  void Invalid(const std::string& path, const T& value, const std::string& why) {
    out_.push_back(fmt::format("KubeProxyConfiguration.{}: Invalid value: {}: {}", path, Text(value), why));
  }

  void MasqueradeBit(const std::string& section, int bit) {
    if (bit < 0 || bit > 31) Invalid(section + ".MasqueradeBit", bit, "must be within the range [0, 31]");
  }

  void Ipvs() {
    const std::string section = "KubeProxyIPVSConfiguration.";
    if (d_.ipvs.tcp_timeout.count() < 0) Invalid(section + "TCPTimeout", d_.ipvs.tcp_timeout, kNotNegative);
    if (d_.ipvs.tcp_fin_timeout.count() < 0) {
      Invalid(section + "TCPFinTimeout", d_.ipvs.tcp_fin_timeout, kNotNegative);
    }
    if (d_.ipvs.udp_timeout.count() < 0) Invalid(section + "UDPTimeout", d_.ipvs.udp_timeout, kNotNegative);
    for (const std::string& cidr : d_.ipvs.exclude_cidrs) {
      if (!IpPrefix::Parse(cidr)) Invalid(section + "ExcludeCidrs", cidr, "must be a valid IP block");
    }
  }

  void Conntrack() {
    const std::string section = "KubeProxyConntrackConfiguration.";
    const auto& c = d_.conntrack;
    if (c.max_per_core < 0) Invalid(section + "MaxPerCore", c.max_per_core, kNotNegative);
    if (c.min < 0) Invalid(section + "Min", c.min, kNotNegative);
    const std::pair<const char*, Document::Duration> times[] = {
        {"TCPEstablishedTimeout", c.tcp_established_timeout},
        {"TCPCloseWaitTimeout", c.tcp_close_wait_timeout},
        {"UDPTimeout", c.udp_timeout},
        {"UDPStreamTimeout", c.udp_stream_timeout}};
    for (const auto& [name, time] : times) {
      if (time.count() < 0) Invalid(section + name, time, kNotNegative);
    }
  }

  void Modes() {
    if (!d_.mode.empty() && d_.mode != "iptables" && d_.mode != "ipvs" && d_.mode != "nftables" &&
        d_.mode != "ebpf") {
      Invalid("Mode.ProxyMode", d_.mode,
              "must be iptables,ipvs,nftables or blank (blank means the best-available proxy [currently "
              "iptables])");
    }
    const std::string& local = d_.detect_local_mode;
    if (local == "BridgeInterface" && d_.detect_local.bridge_interface.empty()) {
      Invalid("InterfaceName", std::string(), "must not be empty");
    } else if (local == "InterfaceNamePrefix" && d_.detect_local.interface_name_prefix.empty()) {
      Invalid("InterfacePrefix", std::string(), "must not be empty");
    } else if (!local.empty() && local != "ClusterCIDR" && local != "NodeCIDR" &&
               local != "BridgeInterface" && local != "InterfaceNamePrefix") {
      out_.push_back(
          fmt::format("KubeProxyConfiguration.DetectLocalMode: Unsupported value: \"{}\": supported values: "
                      "\"BridgeInterface\", \"ClusterCIDR\", \"InterfaceNamePrefix\", \"NodeCIDR\"",
                      local));
    }
    for (const std::string* name :
         {&d_.detect_local.bridge_interface, &d_.detect_local.interface_name_prefix}) {
      if (name->size() > 15) Invalid("DetectLocal", *name, "must be no longer than an interface's name (15)");
    }
  }

  void Address(const char* path, const std::string& address) {
    auto colon = address.rfind(':');
    if (colon == std::string::npos || address.back() == ']') return Invalid(path, address, "must be IP:port");
    std::string host = address.substr(0, colon), port = address.substr(colon + 1);
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    if (!IpAddress::Parse(host)) Invalid(path, host, "must be a valid IP");
    Result<HostPort> parsed = ParseHostPort(":" + port, 0);
    if (!parsed || parsed->port == 0) Invalid(path, port, "must be a valid port");
  }

  void Periods() {
    auto of_mode = [&](auto field) {
      if (d_.mode == "nftables" || d_.mode == "ebpf") return field(d_.nftables);
      return d_.mode == "ipvs" ? field(d_.ipvs) : field(d_.iptables);
    };
    const Document::Duration sync = of_mode([](const auto& section) { return section.sync_period; });
    const Document::Duration least = of_mode([](const auto& section) { return section.min_sync_period; });
    if (sync.count() <= 0) Invalid("SyncPeriod", sync, "must be greater than 0");
    if (least.count() < 0) Invalid("MinSyncPeriod", least, kNotNegative);
    if (least > sync) {
      Invalid("SyncPeriod", least, "must be greater than or equal to KubeProxyConfiguration.MinSyncPeriod");
    }
  }

  void ClusterCidrs() {
    if (d_.cluster_cidr.empty()) return;
    Result<std::vector<IpPrefix>> cidrs = ParseCidrs(d_.cluster_cidr);
    if (!cidrs) {
      Invalid("DetectLocal.ClusterCIDRs", d_.cluster_cidr,
              "must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)");
    } else if (cidrs->size() > 2) {
      Invalid("DetectLocal.ClusterCIDRs", d_.cluster_cidr,
              "may only hold up to 2 values (e.g. 10.100.0.0/16,fde4:8dba:82e1::/48)");
    } else if (cidrs->size() == 2 && (*cidrs)[0].is_v4() == (*cidrs)[1].is_v4()) {
      Invalid("DetectLocal.ClusterCIDRs", d_.cluster_cidr,
              "must be a valid DualStack CIDR (e.g. 10.100.0.0/16,fde4:8dba:82e1::/48)");
    }
  }

  void NodePortAddresses() {
    for (size_t i = 0; i < d_.node_port_addresses.size(); ++i) {
      const std::string& address = d_.node_port_addresses[i];
      const std::string path = fmt::format("NodePortAddresses[{}]", i);
      if (address == "primary") {
        if (i == 0 && d_.node_port_addresses.size() == 1) continue;
        Invalid(path, address, "can't use both 'primary' and CIDRs");
      } else if (!IpPrefix::Parse(address)) {
        Invalid(path, address, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
      }
    }
  }

  const Document& d_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> Problems(const Document& document) { return Checker(document).Run(); }

}  // namespace keelson::proxy
