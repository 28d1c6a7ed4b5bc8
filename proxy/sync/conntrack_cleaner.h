// Removes stale UDP flows from connection tracking. A UDP client that sends from one port stays with the
// endpoint that its first packet was translated to, even when that endpoint has gone, and stays untranslated
// when there was no endpoint yet. So flows to a Service that do not lead to a serving endpoint are removed,
// and the next packet is translated anew. Flows of a Service without serving endpoints stay.
//
// Not thread safe.
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
  // Replaces the endpoints of a Service's UDP ports. No ports: the Service has gone.
  void SetService(const std::string& key, const std::vector<ResolvedPort>& v4,
                  const std::vector<ResolvedPort>& v6 = {});
  // The addresses that NodePorts answer on.
  void SetNodeIps(const std::vector<IpAddress>& ips) { node_ips_ = {ips.begin(), ips.end()}; }
  // Whether Services have changed since the last TakeStale().
  bool NeedsLook() const { return !changed_.empty(); }
  // Stale flows among `flows`, of Services that have changed since the last call. Pure.
  std::vector<netlink::Flow> TakeStale(const std::vector<netlink::Flow>& flows);
  struct Removed {
    int v4 = 0, v6 = 0;
  };
  // TakeStale() on the kernel's flows, and removes these.
  Result<Removed> Clean(netlink::Socket& socket);

 private:
  using Target = std::pair<IpAddress, uint16_t>;
  struct Service {
    std::map<Target, std::set<Target>> vips;  // address and port -> endpoints
    std::map<uint16_t, std::set<Target>> node_ports;
    bool operator==(const Service&) const = default;
  };
  static void Add(const ResolvedPort& port, Service& into);
  static bool IsStale(const netlink::Flow& flow, const std::set<Target>& endpoints);

  std::set<IpAddress> node_ips_;
  std::map<std::string, Service> services_;
  std::map<Target, std::set<Target>> changed_vips_;
  std::map<uint16_t, std::set<Target>> changed_node_ports_;
  std::set<std::string> changed_;
};

}  // namespace keelson::proxy
