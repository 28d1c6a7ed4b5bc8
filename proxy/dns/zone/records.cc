#include "proxy/dns/zone/records.h"

#include <algorithm>

#include "lib/api/types.h"
#include "lib/base/text.h"

namespace keelson::proxy::dns {
namespace {

constexpr char kServiceNameLabel[] = "kubernetes.io/service-name";

// The API leaves out what is the default.
std::string ProtocolLabel(const std::string& protocol) {
  return protocol.empty() ? "tcp" : keelson::Lower(protocol);
}

// Strings and lists have their size in front.
class Packer {
 public:
  void Number(size_t value) {
    for (; value > 0x7f; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void Text(std::string_view text) {
    Number(text.size());
    out_ += text;
  }
  void Ports(const std::vector<PortName>& ports) {
    Number(ports.size());
    for (const PortName& port : ports) {
      Text(port.name);
      Text(port.protocol);
      Number(port.number);
    }
  }
  std::string Take() {
    out_.shrink_to_fit();
    return std::move(out_);
  }

 private:
  std::string out_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view in) : in_(in) {}
  size_t Number() {
    size_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(in_.front());
      in_.remove_prefix(1);
      value |= static_cast<size_t>(byte & 0x7f) << shift;
      if (byte <= 0x7f) return value;
    }
  }
  std::string_view Text() {
    const size_t size = Number();
    const std::string_view out = in_.substr(0, size);
    in_.remove_prefix(size);
    return out;
  }
  IpAddress Ip() { return IpAddress::FromBytes(Text()); }
  std::vector<PortName> Ports() {
    std::vector<PortName> out(Number());
    for (PortName& port : out) {
      port.name = Text();
      port.protocol = Text();
      port.number = static_cast<uint16_t>(Number());
    }
    return out;
  }

 private:
  std::string_view in_;
};

}  // namespace

std::string Pack(const ServiceFacts& facts) {
  Packer out;
  out.Number(facts.headless);
  out.Number(facts.cluster_ips.size());
  for (const IpAddress& ip : facts.cluster_ips) out.Text(ip.bytes());
  out.Ports(facts.ports);
  out.Text(facts.external);
  return out.Take();
}

ServiceFacts UnpackService(std::string_view packed) {
  Unpacker in(packed);
  ServiceFacts out;
  out.headless = in.Number() != 0;
  out.cluster_ips.resize(in.Number());
  for (IpAddress& ip : out.cluster_ips) ip = in.Ip();
  out.ports = in.Ports();
  out.external = in.Text();
  return out;
}

std::string Pack(const SliceFacts& facts) {
  Packer out;
  out.Ports(facts.ports);
  out.Number(facts.endpoints.size());
  for (const SliceEndpoint& endpoint : facts.endpoints) {
    out.Text(endpoint.hostname);
    out.Text(endpoint.ip.bytes());
  }
  return out.Take();
}

SliceFacts UnpackSlice(std::string_view packed) {
  Unpacker in(packed);
  SliceFacts out;
  out.ports = in.Ports();
  out.endpoints.resize(in.Number());
  for (SliceEndpoint& endpoint : out.endpoints) {
    endpoint.hostname = in.Text();
    endpoint.ip = in.Ip();
  }
  return out;
}

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

ServiceFacts FactsOf(const corev1::Service& service) {
  ServiceFacts out;
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
        {keelson::Lower(port.name()), ProtocolLabel(port.protocol()), static_cast<uint16_t>(port.port())});
  }
  return out;
}

SliceFacts FactsOf(const discoveryv1::EndpointSlice& slice) {
  SliceFacts out;
  out.ports.reserve(static_cast<size_t>(slice.ports_size()));
  out.endpoints.reserve(static_cast<size_t>(slice.endpoints_size()));
  for (const auto& port : slice.ports()) {
    if (!port.has_port()) continue;
    out.ports.push_back(
        {keelson::Lower(port.name()), ProtocolLabel(port.protocol()), static_cast<uint16_t>(port.port())});
  }
  for (const auto& endpoint : slice.endpoints()) {
    if (endpoint.conditions().has_ready() && !endpoint.conditions().ready()) continue;
    for (const std::string& text : endpoint.addresses()) {
      if (Result<IpAddress> ip = IpAddress::Parse(text)) {
        out.endpoints.push_back({keelson::Lower(endpoint.hostname()), *ip});
      }
    }
  }
  return out;
}

}  // namespace keelson::proxy::dns
