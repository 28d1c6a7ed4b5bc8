#include "cni/agent/policy/objects.h"

#include <algorithm>

#include "cni/agent/policy/wire.h"

namespace keelson::cni::agent {
namespace {

using client::ForEachWireField;
using client::WireField;

constexpr int kMetadata = 1, kSpec = 2, kStatus = 3;  // of every kind
// Pod: PodSpec, Container, ContainerPort, PodStatus, PodIP.
constexpr int kContainers = 2, kNodeName = 10, kHostNetwork = 11, kInitContainers = 20;
constexpr int kPorts = 6, kRestartPolicy = 24;
constexpr int kPortName = 1, kContainerPort = 3, kPortProtocol = 4;
constexpr int kPhase = 1, kPodIp = 6, kPodIps = 12, kIp = 1;

Result<> ParseContainerPort(std::string_view raw, std::vector<policy::ContainerPort>& out) {
  policy::ContainerPort port;
  std::string_view protocol;
  KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kPortName) port.name = field.payload;
    if (field.number == kContainerPort) port.port = static_cast<uint16_t>(field.value);
    if (field.number == kPortProtocol) protocol = field.payload;
    return {};
  }));
  std::optional<uint8_t> number = ProtocolNumber(protocol);
  if (port.name.empty() || !number || port.port == 0) return {};
  port.protocol = *number;
  out.push_back(std::move(port));
  return {};
}

// Of the init containers, those that restart always run beside the others.
Result<> ParseContainer(std::string_view raw, bool init, std::vector<policy::ContainerPort>& out) {
  std::vector<policy::ContainerPort> ports;
  bool runs = !init;
  KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kRestartPolicy && field.payload == "Always") runs = true;
    return field.number == kPorts ? ParseContainerPort(field.payload, ports) : Result<>();
  }));
  if (runs) out.insert(out.end(), ports.begin(), ports.end());
  return {};
}

Result<> ParsePodSpec(std::string_view raw, policy::Pod& out) {
  return ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kNodeName) out.node = field.payload;
    if (field.number == kHostNetwork) out.host_network = field.value != 0;
    if (field.number == kContainers) return ParseContainer(field.payload, false, out.ports);
    if (field.number == kInitContainers) return ParseContainer(field.payload, true, out.ports);
    return {};
  });
}

Result<> ParsePodStatus(std::string_view raw, policy::Pod& out) {
  std::vector<std::string_view> texts;
  std::string_view single;
  KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kPhase) out.finished = field.payload == "Succeeded" || field.payload == "Failed";
    if (field.number == kPodIp) single = field.payload;
    if (field.number != kPodIps) return {};
    return ForEachWireField(field.payload, [&](const WireField& ip) -> Result<> {
      if (ip.number == kIp) texts.push_back(ip.payload);
      return {};
    });
  }));
  if (texts.empty() && !single.empty()) texts.push_back(single);
  for (std::string_view text : texts) {
    if (Result<IpAddress> ip = IpAddress::Parse(text)) out.addresses.push_back(*ip);
  }
  return {};
}

}  // namespace

Result<Parsed<policy::Pod>> ParsePod(std::string_view raw) {
  Parsed<policy::Pod> out;
  KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kSpec) return ParsePodSpec(field.payload, out.value);
    if (field.number == kStatus) return ParsePodStatus(field.payload, out.value);
    if (field.number != kMetadata) return {};
    KEELSON_ASSIGN_OR_RETURN(Metadata metadata, ParseMetadata(field.payload));
    out.key = metadata.ns + "/" + metadata.name;
    out.resource_version = std::move(metadata.resource_version);
    out.value.ns = std::move(metadata.ns);
    out.value.name = std::move(metadata.name);
    out.value.uid = std::move(metadata.uid);
    out.value.static_uid = std::move(metadata.mirror);
    out.value.labels = std::move(metadata.labels);
    out.value.created = metadata.created;
    out.value.terminating = metadata.deleted;
    return {};
  }));
  return out;
}

Result<Parsed<policy::Labels>> ParseNamespace(std::string_view raw) {
  Parsed<policy::Labels> out;
  KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number != kMetadata) return {};
    KEELSON_ASSIGN_OR_RETURN(Metadata metadata, ParseMetadata(field.payload));
    out.key = std::move(metadata.name);
    out.resource_version = std::move(metadata.resource_version);
    out.value = std::move(metadata.labels);
    return {};
  }));
  return out;
}

}  // namespace keelson::cni::agent
