#include "ctl/config/complete.h"
#include "lib/base/ip.h"
#include "lib/base/text.h"

namespace keelson::ctl {

std::string HostAndPort(const std::string& host, uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string HostOf(const std::string& endpoint) {
  std::string host = endpoint.substr(0, endpoint.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

Result<std::string> ApiEndpoint(const InitConfiguration& config) {
  const std::string& given = config.cluster.control_plane_endpoint;
  if (given.empty()) return HostAndPort(config.advertise_address, config.bind_port);
  if (IpAddress::Parse(given)) return HostAndPort(given, config.bind_port);
  const size_t colon = given.rfind(':');
  if (given.ends_with(']') || colon == std::string::npos) {
    return given + ":" + std::to_string(config.bind_port);
  }
  const std::string_view port = std::string_view(given).substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
  if (!digits || std::stoi(std::string(port)) < 1 || std::stoi(std::string(port)) > 65535) {
    return Error(Code::kInvalid,
                 "port " + std::string(port) + " is not a valid TCP port in the range 1-65535");
  }
  return given;
}

Result<std::string> ServiceAddress(const ClusterConfiguration& cluster, int index) {
  const std::vector<std::string> subnets = SplitList(cluster.service_subnet);
  if (subnets.empty()) return Error(Code::kInvalid, "there is no service subnet");
  KEELSON_ASSIGN_OR_RETURN(const IpPrefix subnet, IpPrefix::Parse(subnets[0]));
  return subnet.Network().Plus(index).ToString();
}

Result<std::string> DnsAddresses(const ClusterConfiguration& cluster) {
  std::string out;
  for (const std::string& text : SplitList(cluster.service_subnet)) {
    KEELSON_ASSIGN_OR_RETURN(const IpPrefix subnet, IpPrefix::Parse(text));
    out += (out.empty() ? "" : ",") + subnet.Network().Plus(10).ToString();
  }
  return out;
}

}  // namespace keelson::ctl
