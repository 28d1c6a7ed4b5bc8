#include "proxy/dns/zone/lookup.h"

#include <algorithm>
#include <array>

namespace keelson::proxy::dns {
namespace {

using Labels = std::array<std::string_view, 6>;  // from the right: the rightmost first

// The labels of `name` in front of `suffix`; their number, or more than the array holds if there are too
// many.
size_t Split(std::string_view name, std::string_view suffix, Labels& labels) {
  std::string_view rest = name;
  size_t count = 0;
  while (rest.size() > suffix.size() && count < labels.size()) labels[count++] = TakeLabel(rest);
  if (rest.size() > suffix.size()) return labels.size() + 1;
  std::reverse(labels.begin(), labels.begin() + static_cast<long>(count));
  return count;
}

Node FindPod(const Labels& labels, size_t count) {
  if (count <= 2) return {Node::kEmpty};  // every namespace may have pods
  if (count > 3) return {};
  std::string text(labels[2]);
  bool v4 = std::count(text.begin(), text.end(), '-') == 3 && text.find("--") == std::string::npos;
  std::replace(text.begin(), text.end(), '-', v4 ? '.' : ':');
  Result<IpAddress> ip = IpAddress::Parse(text);
  if (!ip) return {};
  Node out{Node::kPod};
  out.ip = *ip;
  return out;
}

std::span<const EndpointName> EndpointsNamed(const ServiceRecords& service, std::string_view name) {
  auto less = [](const auto& a, const auto& b) {
    if constexpr (std::is_convertible_v<decltype(a), std::string_view>) {
      return a < std::string_view(b.name);
    } else {
      return std::string_view(a.name) < b;
    }
  };
  auto first = std::lower_bound(service.endpoints.begin(), service.endpoints.end(), name, less);
  auto last = std::upper_bound(first, service.endpoints.end(), name, less);
  return {first, last};
}

bool HasPort(const ServiceRecords& service, std::string_view name, std::string_view protocol) {
  for (const auto& ports : service.ports) {
    for (const PortName& port : ports) {
      if (!port.name.empty() && Matches(port, name, protocol)) return true;
    }
  }
  return false;
}

Node FindBelowService(const ServiceRecords& service, std::string_view name, const Labels& labels,
                      size_t count) {
  if (count == 3) return {Node::kService, &service};
  if (!service.external.empty() || count > 5) return {};
  if (count == 4) {
    Node out{Node::kEndpoints, &service};
    out.endpoints = EndpointsNamed(service, name);
    if (!out.endpoints.empty()) return out;
  }
  auto bare = [](std::string_view label) { return label.empty() ? label : label.substr(1); };
  if (labels[3].front() != '_' || (count == 5 && labels[4].front() != '_')) return {};
  Node out{Node::kPort, &service};
  out.protocol = bare(labels[3]);
  if (count == 5) out.port = bare(labels[4]);
  if (out.protocol.empty() || (count == 5 && out.port.empty()) || !HasPort(service, out.port, out.protocol)) {
    return {};
  }
  if (count == 4) return {Node::kEmpty};
  return out;
}

}  // namespace

Node FindNode(const Snapshot& zone, std::string_view name) {
  if (name == zone.zone) return {Node::kApex};
  if (name == zone.ns) return {Node::kNameServer};
  if (name == zone.version) return {Node::kVersion};
  if (name == zone.dns) return {Node::kEmpty};
  Labels labels;
  size_t count = Split(name, zone.zone, labels);
  if (count > labels.size()) return {};
  if (labels[0] == "pod") return FindPod(labels, count);
  if (labels[0] != "svc") return {};
  if (count == 1) return {Node::kEmpty};
  if (count == 2) return {zone.namespaces->count(labels[1]) ? Node::kEmpty : Node::kNone};
  size_t size = zone.svc.size() + labels[1].size() + labels[2].size() + 2;
  const ServiceRecords* service = zone.services.Find(name.substr(name.size() - size));
  return service ? FindBelowService(*service, name, labels, count) : Node{};
}

bool ReverseAddress(std::string_view name, IpAddress& ip) {
  // The terminating NUL is the root label. NOLINTBEGIN(bugprone-string-constructor)
  static constexpr std::string_view kV4(
      "\x07in-addr\x04"
      "arpa",
      14),
      kV6("\x03ip6\x04"
          "arpa",
          10);
  // NOLINTEND(bugprone-string-constructor)
  bool v4 = EndsWith(name, kV4);
  if (!v4 && !EndsWith(name, kV6)) return false;
  std::string_view suffix = v4 ? kV4 : kV6;
  uint8_t bytes[16] = {};
  size_t size = v4 ? 4 : 16, parts = v4 ? 4 : 32;
  std::string_view rest = name;
  for (size_t i = 0; i < parts; ++i) {
    if (rest.size() <= suffix.size()) return false;
    std::string_view label = TakeLabel(rest);
    if (label.size() > (v4 ? 3 : 1) || (label.size() > 1 && label[0] == '0')) return false;
    unsigned value = 0;
    for (char c : label) {
      bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
      if (!digit && (v4 || !letter)) return false;
      value = value * (v4 ? 10 : 16) + static_cast<unsigned>(digit ? c - '0' : c - 'a' + 10);
    }
    if (value > 255) return false;
    if (v4) {
      bytes[size - 1 - i] = static_cast<uint8_t>(value);
    } else {
      bytes[size - 1 - i / 2] |= static_cast<uint8_t>(i % 2 ? value << 4 : value);
    }
  }
  if (rest.size() != suffix.size()) return false;
  ip = IpAddress::FromBytes({reinterpret_cast<const char*>(bytes), size});
  return true;
}

}  // namespace keelson::proxy::dns
