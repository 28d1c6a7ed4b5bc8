// The part of a dump that is mode ebpf's at sockets.
#include <algorithm>
#include <boost/json.hpp>

#include "ctl/output.h"
#include "ctl/proxy/dump.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

const char* VerdictOf(Answer answer) {
  switch (answer) {
    case Answer::kPass:
      return "leaves to packets";
    case Answer::kServe:
      return "serves";
    case Answer::kRefuse:
      return "refuses";
    case Answer::kDrop:
      return "drops";
  }
  return "?";
}

std::string VipText(const Vip& vip) {
  if (vip.protocol == 0) return AddressText(vip.ip, 0) + " (other ports)";
  return AddressText(vip.ip, vip.port) + "/" + ProtocolName(vip.protocol);
}

std::string ClientText(const SocketMaps& maps, uint64_t cookie) {
  return cookie == maps.node_netns ? "node" : "namespace " + std::to_string(cookie);
}

int64_t SecondsLeft(const SocketMaps& maps, const Stay& stay) {
  auto service = maps.services.find(stay.vip);
  if (service == maps.services.end()) return 0;
  const auto left = service->second.affinity - (maps.read_at - stay.used);
  return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(left).count());
}

json::object StayDocument(const Stay& stay) {
  json::object out;
  if (stay.vip.ip) out["address"] = stay.vip.ip->ToString();
  out["port"] = stay.vip.port;
  out["protocol"] = ProtocolName(stay.vip.protocol);
  out["endpoint"] = AddressText(stay.target.ip, stay.target.port);
  return out;
}

json::array SocketStays(const std::vector<Stay>& stays) {
  json::array out;
  for (const Stay& stay : stays) {
    json::object one = StayDocument(stay);
    one["socket"] = stay.cookie;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::vector<DumpedService> DumpSockets(const SocketMaps& maps) {
  std::vector<DumpedService> out;
  for (const auto& [vip, service] : maps.services) {
    DumpedService one{.mode = "ebpf", .protocol = vip.protocol, .ip = vip.ip, .port = vip.port};
    for (uint32_t slot = 0; slot < service.endpoints; ++slot) {
      auto found = maps.endpoints.find({vip, slot});
      if (found != maps.endpoints.end()) {
        one.backends.push_back({.ip = found->second.ip, .port = found->second.port});
      }
    }
    auto add = [&](const char* scope, Answer answer) {
      one.scope = scope;
      one.verdict = VerdictOf(answer);
      out.push_back(one);
      if (answer != Answer::kServe) out.back().backends.clear();
    };
    if (service.pods == service.node) {
      add("sockets", service.pods);
    } else {
      add("sockets of pods", service.pods);
      add("sockets of the node", service.node);
    }
  }
  return out;
}

json::value SocketsDocument(const SocketMaps& maps) {
  json::array fill, programs, affinity;
  for (const MapFill& map : maps.fill) {
    fill.push_back({{"name", map.name}, {"entries", map.entries}, {"maxEntries", map.room}});
  }
  for (const SocketProgram& program : maps.programs) {
    programs.push_back({{"name", program.name}, {"cgroup", program.cgroup}});
  }
  for (const Stay& stay : maps.affinity) {
    json::object one = StayDocument(stay);
    one["client"] = ClientText(maps, stay.cookie);
    one["secondsLeft"] = SecondsLeft(maps, stay);
    affinity.push_back(std::move(one));
  }
  json::array node_port_ips;
  for (const IpAddress& ip : maps.node_port_ips) node_port_ips.push_back(json::string(ip.ToString()));
  return json::object{{"family", maps.v4 ? "IPv4" : "IPv6"}, {"maps", std::move(fill)},
                      {"programs", std::move(programs)},     {"nodePortAddresses", std::move(node_port_ips)},
                      {"affinity", std::move(affinity)},     {"udpSockets", SocketStays(maps.flows)},
                      {"udpAnswers", SocketStays(maps.sent)}};
}

std::string SocketsTable(const std::vector<SocketMaps>& families) {
  std::vector<std::vector<std::string>> fill = {{"MAP", "FAMILY", "ENTRIES", "ROOM"}};
  std::vector<std::vector<std::string>> stays = {{"CLIENT", "OF", "STAYS WITH", "FOR"}};
  for (const SocketMaps& maps : families) {
    for (const MapFill& map : maps.fill) {
      fill.push_back(
          {map.name, maps.v4 ? "IPv4" : "IPv6", std::to_string(map.entries), std::to_string(map.room)});
    }
    for (const Stay& stay : maps.affinity) {
      stays.push_back({ClientText(maps, stay.cookie), VipText(stay.vip),
                       AddressText(stay.target.ip, stay.target.port),
                       std::to_string(SecondsLeft(maps, stay)) + " s"});
    }
    for (const Stay& stay : maps.flows) {
      stays.push_back({"socket " + std::to_string(stay.cookie), VipText(stay.vip),
                       AddressText(stay.target.ip, stay.target.port), "as long as it is an endpoint"});
    }
  }
  std::string out;
  if (fill.size() > 1) out += "\n" + TextTable(fill);
  if (stays.size() > 1) out += "\n" + TextTable(stays);
  return out;
}

}  // namespace keelson::ctl
