#include "ctl/ebpf/external_maps.h"

#include <algorithm>

#include "lib/bpf/tc.h"
#include "lib/dataplane/ebpf_codec.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/netlink/link.h"

namespace keelson::ctl {

using dataplane::FromBytes;

void ExternalMaps::Decode(const std::string& map, std::string_view key, std::string_view value) {
  if (map == "outside") {
    const auto entry = *FromBytes<dataplane::ExternalServiceEntry>(value);
    services[dataplane::Decode(*FromBytes<dataplane::ServiceKey>(key))] = {
        .endpoints = entry.endpoints,
        .first_slot = entry.first_slot,
        .maglev_chunks = entry.maglev_chunks,
        .affinity = std::chrono::seconds(entry.affinity),
        .masquerade = entry.masquerade != 0,
        .limited = entry.limited != 0};
  } else if (map == "maglev") {
    const auto at = *FromBytes<dataplane::MaglevKey>(key);
    const auto chunk = *FromBytes<dataplane::MaglevChunk>(value);
    maglev[{dataplane::Decode(at.service), at.chunk}].assign(std::begin(chunk.slots), std::end(chunk.slots));
  } else if (map == "source_ranges") {
    const auto range = *FromBytes<dataplane::SourceRangeKey>(key);
    source_ranges.emplace_back(dataplane::Decode(range.service), dataplane::DecodeRange(range));
  } else if (map == "pods") {
    pods.push_back(dataplane::Decode(*FromBytes<dataplane::PodCidrKey>(key)));
  } else if (map == "connections") {
    connections[dataplane::Decode(*FromBytes<dataplane::ConnectionTuple>(key))] =
        dataplane::Decode(*FromBytes<dataplane::NatEntry>(value));
  } else if (map == "outside_affinity") {
    const auto client = *FromBytes<dataplane::ExternalClientKey>(key);
    const auto entry = *FromBytes<dataplane::AffinityEntry>(value);
    affinity.push_back({.service = dataplane::Decode(client.service),
                        .client = dataplane::DecodeIp(client.ip),
                        .endpoint = dataplane::Decode(entry.endpoint),
                        .last_used = std::chrono::nanoseconds(entry.last_used)});
  } else if (map == "devices") {
    devices[*FromBytes<int>(key)].served = true;
  } else if (map == "direct_devices") {
    const auto entry = *FromBytes<dataplane::DirectDeviceEntry>(value);
    ExternalDevice& device = devices[*FromBytes<int>(key)];
    const IpAddress ip = dataplane::DecodeIp(entry.address);
    if (!ip.IsUnspecified()) device.direct_source = ip;
    device.mtu = entry.mtu;
  } else if (map == "fast_devices") {
    devices[*FromBytes<int>(key)].xdp = true;
  }
}

const ExternalDevice* ExternalMaps::Device(const std::string& link) const {
  auto found =
      std::find_if(devices.begin(), devices.end(), [&](const auto& one) { return one.second.link == link; });
  return found == devices.end() ? nullptr : &found->second;
}

Result<> ReadFilters(bool v4, ExternalMaps& maps) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Link> links, netlink::ListLinks(socket));
  for (const netlink::Link& link : links) {
    bool there[2] = {};
    for (bool in : {true, false}) {
      KEELSON_ASSIGN_OR_RETURN(
          std::optional<std::string> name,
          bpf::TcProgramAt(
              {.link_index = link.index, .ingress = in, .priority = dataplane::FilterPriority(v4)}));
      there[in] = name == (in ? dataplane::kIngressFilter : dataplane::kEgressFilter);
    }
    auto known = maps.devices.find(link.index);
    if (known == maps.devices.end() && !there[false] && !there[true]) continue;
    ExternalDevice& device = maps.devices[link.index];
    device.link = link.name;
    device.egress_filter = there[false];
    device.ingress_filter = there[true];
  }
  // Of those that have gone nothing is to be said.
  std::erase_if(maps.devices, [](const auto& one) { return one.second.link.empty(); });
  return {};
}

}  // namespace keelson::ctl
