#include "ctl/ebpf/outside_packet.h"

#include <algorithm>
#include <map>

#include "ctl/output.h"

namespace keelson::ctl {
namespace {

using std::chrono::seconds;

constexpr uint8_t kTcp = 6, kUdp = 17;

std::string AskedText(const OutsidePacket& packet) {
  return AddressText(packet.to, packet.port) + "/" + ProtocolName(packet.protocol);
}

bool IsIn(const std::vector<IpPrefix>& ranges, const IpAddress& ip) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const IpPrefix& range) { return range.Contains(ip); });
}

bool IsAdmitted(const OutsideMaps& maps, const Vip& vip, const IpAddress& client) {
  return std::any_of(maps.source_ranges.begin(), maps.source_ranges.end(),
                     [&](const auto& range) { return range.first == vip && range.second.Contains(client); });
}

const OutsideService* Find(const SocketMaps& maps, Vip& vip) {
  auto found = maps.outside.services.find(vip);
  if (found == maps.outside.services.end() && maps.node_port_ips.contains(*vip.ip)) {
    vip.ip.reset();
    found = maps.outside.services.find(vip);
  }
  return found == maps.outside.services.end() ? nullptr : &found->second;
}

// How often the table leads to each slot.
std::map<uint32_t, size_t> SlotsOf(const OutsideMaps& maps, const Vip& vip, const OutsideService& service) {
  std::map<uint32_t, size_t> out;
  for (uint32_t row = 0; row < service.rows; ++row) {
    auto found = maps.maglev.find({vip, row});
    if (found == maps.maglev.end()) continue;
    for (uint16_t slot : found->second) ++out[service.first + slot];
  }
  if (out.empty()) out[service.first] = 1;
  return out;
}

void Choose(const SocketMaps& maps, const Vip& vip, const OutsideService& service, OutsideOutcome& out) {
  size_t all = 0;
  std::map<Target, size_t> counts;
  for (const auto& [slot, count] : SlotsOf(maps.outside, vip, service)) {
    auto found = maps.endpoints.find({vip, slot});
    // As the program does where a list has just become shorter.
    if (found == maps.endpoints.end()) found = maps.endpoints.find({vip, service.first});
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

void Stick(const SocketMaps& maps, const Vip& vip, const OutsidePacket& packet, seconds affinity,
           OutsideOutcome& out) {
  for (const OutsideStay& stay : maps.outside.affinity) {
    if (stay.vip != vip || stay.client != packet.client || maps.read_at - stay.used >= affinity) continue;
    auto is = [&](const OutsideChoice& choice) { return choice.target == stay.target; };
    if (std::none_of(out.choices.begin(), out.choices.end(), is)) continue;
    out.why += ", and " + packet.client.ToString() + " stays with one";
    out.choices = {{stay.target, 100}};
    return;
  }
  out.why += ", one of which the client will stay with";
}

std::string FamilyText(const SocketMaps& maps) { return maps.v4 ? "IPv4: " : "IPv6: "; }

// As long as the programs would take it for open.
bool IsOpen(const Translated& there, const Translated& back, uint8_t protocol, std::chrono::nanoseconds now) {
  const auto idle = now - std::max(there.used, back.used);
  if (protocol == kUdp) return idle < seconds(180);
  if (there.reset || back.reset || (there.finished && back.finished)) return false;
  return idle < (back.used.count() == 0 ? seconds(120) : seconds(86400));
}

}  // namespace

OutsideOutcome MeetFilter(const SocketMaps& maps, const OutsidePacket& packet) {
  const OutsideDevice* device = maps.outside.Device(packet.link);
  if (!device || !device->served) return {.why = packet.link + " is not one of the devices that are served"};
  if (!device->in) return {.why = "not attached"};
  if (packet.protocol != kTcp && packet.protocol != kUdp)
    return {.why = "only TCP and UDP are served at devices"};
  Vip vip{packet.to, packet.protocol, packet.port};
  const OutsideService* service = Find(maps, vip);
  if (!service) return {.why = AskedText(packet) + " is not in outside"};
  if (maps.outside.draining) return {.why = "serves nobody new: the mode is being left"};
  if (IsIn(maps.outside.pods, packet.client))
    return {.why = packet.client.ToString() + " is a pod's address"};
  if (service->limited && !IsAdmitted(maps.outside, vip, packet.client)) {
    return {.why = packet.client.ToString() + " is in none of the source_ranges"};
  }
  OutsideOutcome out{.why = AskedText(packet) + " has " + std::to_string(service->endpoints) +
                            " endpoint(s)" + (service->rows > 0 ? " by Maglev" : "")};
  Choose(maps, vip, *service, out);
  out.served = !out.choices.empty();
  if (!out.served) {  // as the program does when there is none any more
    out.misses = false;
    out.why += ", none of which is in endpoints";
    return out;
  }
  out.masquerade = service->masquerade;
  if (service->affinity.count() > 0) Stick(maps, vip, packet, service->affinity, out);
  return out;
}

std::optional<IpAddress> SentOnFrom(const OutsideMaps& maps, const std::string& in, const std::string& out) {
  const OutsideDevice *from = maps.Device(in), *to = maps.Device(out);
  // What may come is as large as the first one's packets.
  if (!from || !to || from->mtu == 0 || to->mtu < from->mtu) return std::nullopt;
  return to->sent_on;
}

std::vector<netlink::Flow> RememberedFlows(const SocketMaps& maps, uint8_t protocol) {
  std::vector<netlink::Flow> out;
  const auto& connections = maps.outside.connections;
  for (const auto& [ends, there] : connections) {
    if (ends.protocol != protocol || there.back) continue;
    if (there.straight) {
      if (there.reset || maps.read_at - there.used >= seconds(there.finished ? 120 : 86400)) continue;
    } else {
      auto back = connections.find({protocol, there.destination, there.source});
      if (back == connections.end() || !IsOpen(there, back->second, protocol, maps.read_at)) continue;
    }
    out.push_back({.protocol = protocol,
                   .source = ends.source.ip,
                   .destination = ends.destination.ip,
                   .replier = there.destination.ip,
                   .source_port = ends.source.port,
                   .destination_port = ends.destination.port,
                   .replier_port = there.destination.port,
                   .tuple = {}});
  }
  return out;
}

std::vector<Problem> OutsideFaults(const std::vector<SocketMaps>& families) {
  std::vector<Problem> out;
  for (const SocketMaps& maps : families) {
    const std::string family = FamilyText(maps);
    for (const std::string& name : maps.outside.missing)
      out.push_back({"NotPinned", family + name + " is not pinned"});
    bool any = false;
    for (const auto& [index, device] : maps.outside.devices) {
      any = any || device.served;
      if (!device.served) {
        out.push_back({"NotServed", family + device.link + " has filters that do not know of it"});
        continue;
      }
      if (!device.in) {
        out.push_back({"NotAttached", family + "from_outside is not attached to " + device.link +
                                          ": who comes by it meets the rules"});
      }
      if (!device.out) {
        out.push_back({"NotAttached", family + "to_outside is not attached to " + device.link +
                                          ": answers leave as the endpoints', and clients do not know them"});
      }
    }
    if (!any && !maps.outside.services.empty()) {
      out.push_back(
          {"NotServed", family + "no device serves who comes from outside: packets meet the rules"});
    }
  }
  return out;
}

}  // namespace keelson::ctl
