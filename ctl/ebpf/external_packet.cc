#include "ctl/ebpf/external_packet.h"

#include <algorithm>
#include <map>

#include "ctl/output.h"

namespace keelson::ctl {
namespace {

using std::chrono::seconds;

constexpr uint8_t kTcp = 6, kUdp = 17;

std::string AskedText(const ExternalPacket& packet) {
  return AddressText(packet.to, packet.port) + "/" + ProtocolName(packet.protocol);
}

bool IsIn(const std::vector<IpPrefix>& ranges, const IpAddress& ip) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const IpPrefix& range) { return range.Contains(ip); });
}

bool IsAdmitted(const ExternalMaps& maps, const dataplane::ServiceAddress& vip, const IpAddress& client) {
  return std::any_of(maps.source_ranges.begin(), maps.source_ranges.end(),
                     [&](const auto& range) { return range.first == vip && range.second.Contains(client); });
}

const ExternalService* Find(const EbpfMaps& maps, dataplane::ServiceAddress& vip) {
  auto found = maps.external.services.find(vip);
  if (found == maps.external.services.end() && maps.node_port_ips.contains(*vip.ip)) {
    vip.ip.reset();
    found = maps.external.services.find(vip);
  }
  return found == maps.external.services.end() ? nullptr : &found->second;
}

// How often the table leads to each slot.
std::map<uint32_t, size_t> SlotsOf(const ExternalMaps& maps, const dataplane::ServiceAddress& vip,
                                   const ExternalService& service) {
  std::map<uint32_t, size_t> out;
  for (uint32_t chunk = 0; chunk < service.maglev_chunks; ++chunk) {
    auto found = maps.maglev.find({vip, chunk});
    if (found == maps.maglev.end()) continue;
    for (uint16_t slot : found->second) ++out[service.first_slot + slot];
  }
  if (out.empty()) out[service.first_slot] = 1;
  return out;
}

void SelectByMaglev(const EbpfMaps& maps, const dataplane::ServiceAddress& vip,
                    const ExternalService& service, FilterOutcome& out) {
  size_t all = 0;
  std::map<dataplane::EndpointAddress, size_t> counts;
  for (const auto& [slot, count] : SlotsOf(maps.external, vip, service)) {
    auto found = maps.endpoints.find({vip, slot});
    // As the program does where a list has just become shorter.
    if (found == maps.endpoints.end()) found = maps.endpoints.find({vip, service.first_slot});
    all += count;
    if (found == maps.endpoints.end()) {
      out.misses = true;
    } else {
      counts[found->second] += count;
    }
  }
  for (const auto& [target, count] : counts) {
    out.choices.push_back({target, static_cast<int>((100 * count + all / 2) / all)});
  }
}

void ApplyAffinity(const EbpfMaps& maps, const dataplane::ServiceAddress& vip, const ExternalPacket& packet,
                   seconds affinity, FilterOutcome& out) {
  for (const ExternalAffinity& entry : maps.external.affinity) {
    if (entry.service != vip || entry.client != packet.client || maps.read_at - entry.last_used >= affinity) {
      continue;
    }
    auto is = [&](const EndpointChoice& choice) { return choice.endpoint == entry.endpoint; };
    if (std::none_of(out.choices.begin(), out.choices.end(), is)) continue;
    out.why += ", and " + packet.client.ToString() + " stays with one";
    out.choices = {{entry.endpoint, 100}};
    return;
  }
  out.why += ", one of which the client will stay with";
}

std::string FamilyText(const EbpfMaps& maps) { return maps.v4 ? "IPv4: " : "IPv6: "; }

}  // namespace

FilterOutcome RunIngressFilter(const EbpfMaps& maps, const ExternalPacket& packet) {
  const ExternalDevice* device = maps.external.Device(packet.link);
  if (!device || !device->served) return {.why = packet.link + " is not one of the devices that are served"};
  if (!device->ingress_filter) return {.why = "not attached"};
  if (packet.protocol != kTcp && packet.protocol != kUdp) {
    return {.why = "only TCP and UDP are served at devices"};
  }
  dataplane::ServiceAddress vip{packet.to, packet.protocol, packet.port};
  const ExternalService* service = Find(maps, vip);
  if (!service) return {.why = AskedText(packet) + " is not in outside"};
  if (maps.external.draining) return {.why = "serves nobody new: the mode is being left"};
  if (IsIn(maps.external.pods, packet.client)) {
    return {.why = packet.client.ToString() + " is a pod's address"};
  }
  if (service->limited && !IsAdmitted(maps.external, vip, packet.client)) {
    return {.why = packet.client.ToString() + " is in none of the source_ranges"};
  }
  FilterOutcome out{.why = AskedText(packet) + " has " + std::to_string(service->endpoints) + " endpoint(s)" +
                           (service->maglev_chunks > 0 ? " by Maglev" : "")};
  SelectByMaglev(maps, vip, *service, out);
  out.served = !out.choices.empty();
  if (!out.served) {  // as the program does when there is none any more
    out.misses = false;
    out.why += ", none of which is in endpoints";
    return out;
  }
  out.masquerade = service->masquerade;
  if (service->affinity.count() > 0) ApplyAffinity(maps, vip, packet, service->affinity, out);
  return out;
}

std::optional<IpAddress> DirectSource(const ExternalMaps& maps, const std::string& in,
                                      const std::string& out) {
  const ExternalDevice *from = maps.Device(in), *to = maps.Device(out);
  // What may come is as large as the first one's packets.
  if (!from || !to || from->mtu == 0 || to->mtu < from->mtu) return std::nullopt;
  return to->direct_source;
}

std::vector<netlink::Flow> NatFlows(const EbpfMaps& maps, uint8_t protocol) {
  std::vector<netlink::Flow> out;
  const auto& connections = maps.external.connections;
  for (const auto& [connection, forward] : connections) {
    if (connection.protocol != protocol || forward.reply) continue;
    if (forward.dsr) {
      if (!dataplane::IsOpenDsr(forward, maps.read_at)) continue;
    } else {
      auto reply = connections.find({protocol, forward.destination, forward.source});
      if (reply == connections.end() || !dataplane::IsOpen(forward, reply->second, protocol, maps.read_at)) {
        continue;
      }
    }
    out.push_back({.protocol = protocol,
                   .source = connection.source.ip,
                   .destination = connection.destination.ip,
                   .replier = forward.destination.ip,
                   .source_port = connection.source.port,
                   .destination_port = connection.destination.port,
                   .replier_port = forward.destination.port,
                   .tuple = {}});
  }
  return out;
}

std::vector<Problem> ExternalFaults(const std::vector<EbpfMaps>& families) {
  std::vector<Problem> out;
  for (const EbpfMaps& maps : families) {
    const std::string family = FamilyText(maps);
    for (const std::string& name : maps.external.missing) {
      out.push_back({"NotPinned", family + name + " is not pinned"});
    }
    bool any = false;
    for (const auto& [index, device] : maps.external.devices) {
      any = any || device.served;
      if (!device.served) {
        out.push_back({"NotServed", family + device.link + " has filters that do not know of it"});
        continue;
      }
      if (!device.ingress_filter) {
        out.push_back({"NotAttached", family + "from_outside is not attached to " + device.link +
                                          ": who comes by it meets the rules"});
      }
      if (!device.egress_filter) {
        out.push_back({"NotAttached", family + "to_outside is not attached to " + device.link +
                                          ": answers leave as the endpoints', and clients do not know them"});
      }
    }
    if (!any && !maps.external.services.empty()) {
      out.push_back(
          {"NotServed", family + "no device serves who comes from outside: packets meet the rules"});
    }
  }
  return out;
}

}  // namespace keelson::ctl
