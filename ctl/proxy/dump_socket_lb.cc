// The part of a dump that is mode ebpf's at sockets.
#include <algorithm>
#include <boost/json.hpp>

#include "ctl/output.h"
#include "ctl/proxy/dump.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

const char* VerdictOf(dataplane::SocketVerdict answer) {
  switch (answer) {
    case dataplane::kSocketPass:
      return "leaves to packets";
    case dataplane::kSocketServe:
      return "serves";
    case dataplane::kSocketRefuse:
      return "refuses";
    case dataplane::kSocketDrop:
      return "drops";
  }
  return "?";
}

std::string VipText(const dataplane::ServiceAddress& vip) {
  if (vip.protocol == 0) return AddressText(vip.ip, 0) + " (other ports)";
  return AddressText(vip.ip, vip.port) + "/" + ProtocolName(vip.protocol);
}

std::string ClientText(const EbpfMaps& maps, uint64_t cookie) {
  return cookie == maps.node_netns ? "node" : "namespace " + std::to_string(cookie);
}

int64_t SecondsLeft(const EbpfMaps& maps, const SessionAffinity& entry) {
  auto service = maps.services.find(entry.service);
  if (service == maps.services.end()) return 0;
  const auto left = service->second.affinity - (maps.read_at - entry.last_used);
  return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(left).count());
}

json::object AffinityDocument(const SessionAffinity& entry) {
  json::object out;
  if (entry.service.ip) out["address"] = entry.service.ip->ToString();
  out["port"] = entry.service.port;
  out["protocol"] = ProtocolName(entry.service.protocol);
  out["endpoint"] = AddressText(entry.endpoint.ip, entry.endpoint.port);
  return out;
}

json::array SocketAffinities(const std::vector<SessionAffinity>& affinities) {
  json::array out;
  for (const SessionAffinity& entry : affinities) {
    json::object one = AffinityDocument(entry);
    one["socket"] = entry.cookie;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::vector<DumpedService> DumpSocketLb(const EbpfMaps& maps) {
  std::vector<DumpedService> out;
  for (const auto& [vip, service] : maps.services) {
    DumpedService one{.mode = "ebpf", .protocol = vip.protocol, .ip = vip.ip, .port = vip.port};
    for (uint32_t slot = 0; slot < service.endpoints; ++slot) {
      auto found = maps.endpoints.find({vip, slot});
      if (found != maps.endpoints.end()) {
        one.backends.push_back({.ip = found->second.ip, .port = found->second.port});
      }
    }
    auto add = [&](const char* scope, dataplane::SocketVerdict answer) {
      one.scope = scope;
      one.verdict = VerdictOf(answer);
      out.push_back(one);
      if (answer != dataplane::kSocketServe) out.back().backends.clear();
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

json::value SocketLbDocument(const EbpfMaps& maps) {
  json::array fill, programs, affinity;
  for (const MapFill& map : maps.fill) {
    fill.push_back({{"name", map.name}, {"entries", map.entries}, {"maxEntries", map.max_entries}});
  }
  for (const SocketProgram& program : maps.programs) {
    programs.push_back({{"name", program.name}, {"cgroup", program.cgroup}});
  }
  for (const SessionAffinity& entry : maps.affinity) {
    json::object one = AffinityDocument(entry);
    one["client"] = ClientText(maps, entry.cookie);
    one["secondsLeft"] = SecondsLeft(maps, entry);
    affinity.push_back(std::move(one));
  }
  json::array node_port_ips;
  for (const IpAddress& ip : maps.node_port_ips) node_port_ips.push_back(json::string(ip.ToString()));
  return json::object{
      {"family", maps.v4 ? "IPv4" : "IPv6"},      {"maps", std::move(fill)},
      {"programs", std::move(programs)},          {"nodePortAddresses", std::move(node_port_ips)},
      {"affinity", std::move(affinity)},          {"udpSockets", SocketAffinities(maps.flows)},
      {"udpAnswers", SocketAffinities(maps.sent)}};
}

std::string SocketLbTable(const std::vector<EbpfMaps>& families) {
  std::vector<std::vector<std::string>> fill = {{"MAP", "FAMILY", "ENTRIES", "ROOM"}};
  std::vector<std::vector<std::string>> affinities = {{"CLIENT", "OF", "STAYS WITH", "FOR"}};
  for (const EbpfMaps& maps : families) {
    for (const MapFill& map : maps.fill) {
      fill.push_back({map.name, maps.v4 ? "IPv4" : "IPv6", std::to_string(map.entries),
                      std::to_string(map.max_entries)});
    }
    for (const SessionAffinity& entry : maps.affinity) {
      affinities.push_back({ClientText(maps, entry.cookie), VipText(entry.service),
                            AddressText(entry.endpoint.ip, entry.endpoint.port),
                            std::to_string(SecondsLeft(maps, entry)) + " s"});
    }
    for (const SessionAffinity& entry : maps.flows) {
      affinities.push_back({"socket " + std::to_string(entry.cookie), VipText(entry.service),
                            AddressText(entry.endpoint.ip, entry.endpoint.port),
                            "as long as it is an endpoint"});
    }
  }
  std::string out;
  if (fill.size() > 1) out += "\n" + TextTable(fill);
  if (affinities.size() > 1) out += "\n" + TextTable(affinities);
  return out;
}

}  // namespace keelson::ctl
