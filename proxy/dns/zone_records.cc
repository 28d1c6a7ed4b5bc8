#include "proxy/dns/zone_records.h"

#include <algorithm>

#include "lib/api/types.h"
#include "proxy/dns/zone.h"

namespace keelson::proxy::dns {
namespace {

constexpr char kServiceNameLabel[] = "kubernetes.io/service-name";

std::string LowerText(const std::string& text) {
  std::string out = text;
  std::transform(out.begin(), out.end(), out.begin(), Lower);
  return out;
}

// The API leaves out what is the default.
std::string ProtocolLabel(const std::string& protocol) {
  return protocol.empty() ? "tcp" : LowerText(protocol);
}

}  // namespace

std::string ServiceOfSlice(const discoveryv1::EndpointSlice& slice) {
  if (slice.address_type() != "IPv4" && slice.address_type() != "IPv6") return "";
  const auto& labels = slice.metadata().labels();
  auto label = labels.find(kServiceNameLabel);
  if (label == labels.end() || label->second.empty()) return "";
  return slice.metadata().namespace_() + "/" + label->second;
}

std::string DashedAddress(const IpAddress& ip) {
  std::string out = ip.ToString();
  for (char& c : out) {
    if (c == '.' || c == ':') c = '-';
  }
  return out;
}

Zone::Service Zone::Project(const corev1::Service& service) {
  Service out;
  const corev1::ServiceSpec& spec = service.spec();
  if (spec.type() == "ExternalName") {
    // An address is no name: there is no record for it.
    Result<Name> target = ParseName(spec.external_name());
    if (target && target->size() > 1 && !IpAddress::Parse(spec.external_name())) out.external = *target;
    return out;
  }
  out.headless = spec.cluster_ip() == "None";
  std::vector<std::string> ips(spec.cluster_ips().begin(), spec.cluster_ips().end());
  if (ips.empty()) ips.push_back(spec.cluster_ip());
  for (const std::string& text : ips) {
    if (Result<IpAddress> ip = IpAddress::Parse(text)) out.cluster_ips.push_back(*ip);
  }
  for (const corev1::ServicePort& port : spec.ports()) {
    out.ports.push_back(
        {LowerText(port.name()), ProtocolLabel(port.protocol()), static_cast<uint16_t>(port.port())});
  }
  return out;
}

Zone::Slice Zone::Project(const discoveryv1::EndpointSlice& slice) {
  Slice out;
  out.ports.reserve(static_cast<size_t>(slice.ports_size()));
  out.endpoints.reserve(static_cast<size_t>(slice.endpoints_size()));
  for (const auto& port : slice.ports()) {
    if (!port.has_port()) continue;
    out.ports.push_back(
        {LowerText(port.name()), ProtocolLabel(port.protocol()), static_cast<uint16_t>(port.port())});
  }
  for (const auto& endpoint : slice.endpoints()) {
    if (endpoint.conditions().has_ready() && !endpoint.conditions().ready()) continue;
    for (const std::string& text : endpoint.addresses()) {
      if (Result<IpAddress> ip = IpAddress::Parse(text)) {
        out.endpoints.push_back({LowerText(endpoint.hostname()), *ip});
      }
    }
  }
  return out;
}

}  // namespace keelson::proxy::dns
