// The part of a dump that is mode ebpf's at devices.
#include <algorithm>
#include <boost/json.hpp>

#include "ctl/ebpf/outside_packet.h"
#include "ctl/output.h"
#include "ctl/proxy/dump.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

int64_t SecondsLeft(const SocketMaps& maps, const OutsideStay& stay) {
  auto service = maps.outside.services.find(stay.vip);
  if (service == maps.outside.services.end()) return 0;
  const auto left = service->second.affinity - (maps.read_at - stay.used);
  return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(left).count());
}

size_t OpenConnections(const SocketMaps& maps) {
  return RememberedFlows(maps, 6).size() + RememberedFlows(maps, 17).size();
}

std::string SendsOn(const OutsideDevice& device) {
  if (!device.sent_on) return "no";
  return "from " + device.sent_on->ToString() + (device.fast ? ", by its driver" : "");
}

const char* YesNo(bool yes) { return yes ? "yes" : "no"; }

}  // namespace

std::vector<DumpedService> DumpOutside(const SocketMaps& maps) {
  std::vector<DumpedService> out;
  for (const auto& [vip, service] : maps.outside.services) {
    DumpedService& one = out.emplace_back();
    one.mode = "ebpf";
    one.protocol = vip.protocol;
    one.ip = vip.ip;
    one.port = vip.port;
    one.scope = service.limited ? "devices, limited" : "devices";
    for (uint32_t slot = service.first; slot < service.first + service.endpoints; ++slot) {
      auto found = maps.endpoints.find({vip, slot});
      if (found == maps.endpoints.end()) continue;
      one.backends.push_back({.ip = found->second.ip, .port = found->second.port});
    }
  }
  return out;
}

json::value OutsideDocument(const SocketMaps& maps) {
  json::array devices, affinity;
  for (const auto& [index, device] : maps.outside.devices) {
    json::object one = {{"name", device.link}, {"served", device.served}};
    one["fromOutside"] = device.in;
    one["toOutside"] = device.out;
    if (device.sent_on) one["sendsOnFrom"] = device.sent_on->ToString();
    one["byDriver"] = device.fast;
    devices.push_back(std::move(one));
  }
  for (const OutsideStay& stay : maps.outside.affinity) {
    json::object one = {{"client", stay.client.ToString()}, {"port", stay.vip.port}};
    if (stay.vip.ip) one["address"] = stay.vip.ip->ToString();
    one["protocol"] = ProtocolName(stay.vip.protocol);
    one["endpoint"] = AddressText(stay.target.ip, stay.target.port);
    one["secondsLeft"] = SecondsLeft(maps, stay);
    affinity.push_back(std::move(one));
  }
  return json::object{{"family", maps.v4 ? "IPv4" : "IPv6"},
                      {"devices", std::move(devices)},
                      {"affinity", std::move(affinity)},
                      {"openConnections", OpenConnections(maps)},
                      {"draining", maps.outside.draining}};
}

std::string OutsideTable(const std::vector<SocketMaps>& families) {
  std::vector<std::vector<std::string>> devices = {{"DEVICE", "FAMILY", "SERVED", "IN", "OUT", "SENDS ON"}};
  std::vector<std::vector<std::string>> stays = {{"CLIENT OUTSIDE", "OF", "STAYS WITH", "FOR"}};
  for (const SocketMaps& maps : families) {
    for (const auto& [index, device] : maps.outside.devices) {
      devices.push_back({device.link, maps.v4 ? "IPv4" : "IPv6", YesNo(device.served), YesNo(device.in),
                         YesNo(device.out), SendsOn(device)});
    }
    for (const OutsideStay& stay : maps.outside.affinity) {
      stays.push_back({stay.client.ToString(),
                       AddressText(stay.vip.ip, stay.vip.port) + "/" + ProtocolName(stay.vip.protocol),
                       AddressText(stay.target.ip, stay.target.port),
                       std::to_string(SecondsLeft(maps, stay)) + " s"});
    }
  }
  std::string out;
  if (devices.size() > 1) out += "\n" + TextTable(devices);
  if (stays.size() > 1) out += "\n" + TextTable(stays);
  return out;
}

}  // namespace keelson::ctl
