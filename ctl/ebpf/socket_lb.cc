#include "ctl/ebpf/socket_lb.h"

#include <algorithm>

#include "ctl/output.h"

namespace keelson::ctl {
namespace {

constexpr uint8_t kTcp = 6, kUdp = 17;

// As the programs look: the address itself, then a NodePort, or any other port of a cluster IP.
const SocketLbService* Find(const EbpfMaps& maps, dataplane::ServiceAddress& vip) {
  auto found = maps.services.find(vip);
  if (found == maps.services.end()) {
    vip = maps.node_port_ips.contains(*vip.ip)
              ? dataplane::ServiceAddress{std::nullopt, vip.protocol, vip.port}
              : dataplane::ServiceAddress{vip.ip, 0, 0};
    found = maps.services.find(vip);
  }
  return found == maps.services.end() ? nullptr : &found->second;
}

void SelectEndpoints(const EbpfMaps& maps, const dataplane::ServiceAddress& vip,
                     const SocketLbService& service, SocketLbOutcome& out) {
  for (uint32_t slot = 0; slot < service.endpoints; ++slot) {
    auto found = maps.endpoints.find({vip, slot});
    if (found == maps.endpoints.end()) {
      out.misses = true;
    } else {
      out.endpoints.push_back(found->second);
    }
  }
}

// An endpoint that the node stays with while it is one.
void ApplyAffinity(const EbpfMaps& maps, const dataplane::ServiceAddress& vip, std::chrono::seconds affinity,
                   SocketLbOutcome& out) {
  for (const SessionAffinity& entry : maps.affinity) {
    if (entry.cookie != maps.node_netns || entry.service != vip ||
        maps.read_at - entry.last_used >= affinity) {
      continue;
    }
    if (std::find(out.endpoints.begin(), out.endpoints.end(), entry.endpoint) == out.endpoints.end()) {
      continue;
    }
    out.why += ", and the node stays with one";
    out.endpoints = {entry.endpoint};
    return;
  }
}

void AddFaults(const EbpfMaps& maps, uint64_t node_netns, std::vector<Problem>& out) {
  const std::string family = maps.v4 ? "IPv4: " : "IPv6: ";
  for (const std::string& name : maps.missing) out.push_back({"NotPinned", family + name + " is not pinned"});
  for (const SocketProgram& program : maps.programs) {
    if (program.cgroup != 0) continue;
    out.push_back({"NotAttached", family + "program " + program.name + " is attached to nothing"});
  }
  if (maps.node_netns != 0 && node_netns != 0 && maps.node_netns != node_netns) {
    out.push_back({"OtherNode", family + "the maps take another network namespace for the node's"});
  }
}

}  // namespace

std::string ProgramName(SocketCall call, bool v4) {
  return std::string(call == SocketCall::kConnect ? "connect" : "sendmsg") + (v4 ? "4" : "6");
}

SocketLbOutcome RunSocketLb(const EbpfMaps& maps, bool from_node, SocketCall call, const IpAddress& ip,
                            uint8_t protocol, uint16_t port) {
  const std::string asked = AddressText(ip, port) + "/" + ProtocolName(protocol);
  if (protocol != kTcp && protocol != kUdp) return {.why = "only TCP and UDP are served at sockets"};
  dataplane::ServiceAddress vip{ip, protocol, port};
  const SocketLbService* service = Find(maps, vip);
  if (!service) return {.why = asked + " is not in services"};
  SocketLbOutcome out{.verdict = from_node ? service->node : service->pods};
  switch (out.verdict) {
    case dataplane::kSocketServe:
      break;
    case dataplane::kSocketRefuse:
      out.why = vip.protocol == 0 ? asked + " is no port of this address" : asked + " has no endpoints";
      return out;
    case dataplane::kSocketDrop:
      out.why = asked + " has no endpoints on this node";
      return out;
    case dataplane::kSocketPass:
      out.why = asked + " is left to packets";
      return out;
  }
  if (call == SocketCall::kConnect && protocol == kUdp) {
    return {.why = asked + ": connected sockets of UDP are left to packets"};
  }
  out.why = asked + " has " + std::to_string(service->endpoints) + " endpoint(s)";
  SelectEndpoints(maps, vip, *service, out);
  if (out.endpoints.empty()) {  // as the programs do when there is none any more
    out.verdict = dataplane::kSocketRefuse;
    out.misses = false;
    out.why += ", none of which is in endpoints";
  }
  if (service->affinity.count() > 0 && from_node) ApplyAffinity(maps, vip, service->affinity, out);
  return out;
}

std::vector<Problem> SocketLbFaults(const std::vector<EbpfMaps>& families, bool rules,
                                    const std::string& pin_directory, uint64_t node_netns) {
  std::vector<Problem> out;
  for (const EbpfMaps& maps : families) AddFaults(maps, node_netns, out);
  if (rules && families.empty()) {
    out.push_back(
        {"NotPinned", "the rules of mode ebpf are here, but nothing is pinned in " + pin_directory});
  }
  return out;
}

}  // namespace keelson::ctl
