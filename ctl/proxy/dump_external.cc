// The part of a dump that is mode ebpf's at devices.
#include <algorithm>
#include <boost/json.hpp>

#include "ctl/ebpf/external_packet.h"
#include "ctl/output.h"
#include "ctl/proxy/dump.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

int64_t SecondsLeft(const EbpfMaps& maps, const ExternalAffinity& entry) {
  auto service = maps.external.services.find(entry.service);
  if (service == maps.external.services.end()) return 0;
  const auto left = service->second.affinity - (maps.read_at - entry.last_used);
  return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(left).count());
}

size_t OpenConnections(const EbpfMaps& maps) { return NatFlows(maps, 6).size() + NatFlows(maps, 17).size(); }

std::string SendsOn(const ExternalDevice& device) {
  if (!device.direct_source) return "no";
  return "from " + device.direct_source->ToString() + (device.xdp ? ", by its driver" : "");
}

const char* YesNo(bool yes) { return yes ? "yes" : "no"; }

}  // namespace

std::vector<DumpedService> DumpExternal(const EbpfMaps& maps) {
  std::vector<DumpedService> out;
  for (const auto& [vip, service] : maps.external.services) {
    DumpedService& one = out.emplace_back();
    one.mode = "ebpf";
    one.protocol = vip.protocol;
    one.ip = vip.ip;
    one.port = vip.port;
    one.scope = service.limited ? "devices, limited" : "devices";
    for (uint32_t slot = service.first_slot; slot < service.first_slot + service.endpoints; ++slot) {
      auto found = maps.endpoints.find({vip, slot});
      if (found == maps.endpoints.end()) continue;
      one.backends.push_back({.ip = found->second.ip, .port = found->second.port});
    }
  }
  return out;
}

json::value ExternalDocument(const EbpfMaps& maps) {
  json::array devices, affinity;
  for (const auto& [index, device] : maps.external.devices) {
    json::object one = {{"name", device.link}, {"served", device.served}};
    one["fromOutside"] = device.ingress_filter;
    one["toOutside"] = device.egress_filter;
    if (device.direct_source) one["sendsOnFrom"] = device.direct_source->ToString();
    one["byDriver"] = device.xdp;
    devices.push_back(std::move(one));
  }
  for (const ExternalAffinity& entry : maps.external.affinity) {
    json::object one = {{"client", entry.client.ToString()}, {"port", entry.service.port}};
    if (entry.service.ip) one["address"] = entry.service.ip->ToString();
    one["protocol"] = ProtocolName(entry.service.protocol);
    one["endpoint"] = AddressText(entry.endpoint.ip, entry.endpoint.port);
    one["secondsLeft"] = SecondsLeft(maps, entry);
    affinity.push_back(std::move(one));
  }
  return json::object{{"family", maps.v4 ? "IPv4" : "IPv6"},
                      {"devices", std::move(devices)},
                      {"affinity", std::move(affinity)},
                      {"openConnections", OpenConnections(maps)},
                      {"draining", maps.external.draining}};
}

std::string ExternalTable(const std::vector<EbpfMaps>& families) {
  std::vector<std::vector<std::string>> devices = {{"DEVICE", "FAMILY", "SERVED", "IN", "OUT", "SENDS ON"}};
  std::vector<std::vector<std::string>> affinities = {{"CLIENT OUTSIDE", "OF", "STAYS WITH", "FOR"}};
  for (const EbpfMaps& maps : families) {
    for (const auto& [index, device] : maps.external.devices) {
      devices.push_back({device.link, maps.v4 ? "IPv4" : "IPv6", YesNo(device.served),
                         YesNo(device.ingress_filter), YesNo(device.egress_filter), SendsOn(device)});
    }
    for (const ExternalAffinity& entry : maps.external.affinity) {
      affinities.push_back(
          {entry.client.ToString(),
           AddressText(entry.service.ip, entry.service.port) + "/" + ProtocolName(entry.service.protocol),
           AddressText(entry.endpoint.ip, entry.endpoint.port),
           std::to_string(SecondsLeft(maps, entry)) + " s"});
    }
  }
  std::string out;
  if (devices.size() > 1) out += "\n" + TextTable(devices);
  if (affinities.size() > 1) out += "\n" + TextTable(affinities);
  return out;
}

}  // namespace keelson::ctl
