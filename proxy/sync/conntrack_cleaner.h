// UDP has no end of connection: a client that goes on sending from one port stays with the endpoint that its
// first packet was translated to, even when that endpoint has gone, or with none at all when there was none
// yet. So tracked flows to a Service that lead elsewhere than to an endpoint that still answers are removed,
// and the next packet is translated afresh. Where nobody answers there is nothing better: flows stay.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/netlink/conntrack.h"
#include "proxy/model/service_port.h"

namespace keelson::proxy {

class ConntrackCleaner {
 public:
  // What a Service's UDP ports lead to now; remembered until it changes. No ports: the Service has gone.
  void SetService(const std::string& key, const std::vector<ResolvedPort>& v4,
                  const std::vector<ResolvedPort>& v6 = {});
  void SetNodeIps(const std::vector<IpAddress>& ips) { node_ips_ = {ips.begin(), ips.end()}; }
  // Flows that lead astray, of Services set since the last call. Pure.
  bool NeedsLook() const { return !changed_.empty(); }
  std::vector<netlink::Flow> TakeStale(const std::vector<netlink::Flow>& flows);
  struct Removed {
    int v4 = 0, v6 = 0;
  };
  // TakeStale on the kernel's flows, and their removal.
  Result<Removed> Clean(netlink::Socket& socket);

 private:
  using Target = std::pair<IpAddress, uint16_t>;
  struct Service {
    std::map<Target, std::set<Target>> vips;  // address and port -> endpoints
    std::map<uint16_t, std::set<Target>> node_ports;
    bool operator==(const Service&) const = default;
  };
  static void Add(const ResolvedPort& port, Service& into);
  static bool LeadsAstray(const netlink::Flow& flow, const std::set<Target>& endpoints);

  std::set<IpAddress> node_ips_;
  std::map<std::string, Service> services_;
  std::map<Target, std::set<Target>> changed_vips_;
  std::map<uint16_t, std::set<Target>> changed_node_ports_;
  std::set<std::string> changed_;
};

}  // namespace keelson::proxy
