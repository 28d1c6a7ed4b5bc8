// The wanted virtual servers, and the wanted addresses of this node, in one address family. Pure: no kernel,
// no clock. Not thread safe.
//
// TakeServers and TakeAddresses name what has changed; Find and Bound say what is wanted there. Two Services
// may claim one address and port: the first keeps it, and the next one gets it when the first has gone.
// NodePorts are virtual servers on each of the node's addresses.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/netlink/ipvs.h"
#include "proxy/model/service_port.h"

namespace keelson::proxy::ipvs {

using netlink::ServerAddress;

struct Target {
  IpAddress ip;
  uint16_t port = 0;
  auto operator<=>(const Target&) const = default;
};

struct Server {
  std::chrono::seconds affinity{0};
  std::vector<Target> targets;  // sorted, without duplicates, never empty
  bool operator==(const Server&) const = default;
};

class Plan {
 public:
  explicit Plan(bool v4) : v4_(v4) {}

  // Replaces what a Service has. No ports: the Service has gone.
  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports);
  // The addresses that NodePorts answer on.
  void SetNodeIps(const std::vector<IpAddress>& ips);
  // This machine's own addresses, which are not bound a second time.
  void SetOwnIps(const std::vector<IpAddress>& ips);

  // What may have changed since the last call.
  std::set<ServerAddress> TakeServers();
  std::set<IpAddress> TakeAddresses();
  // The wanted server; null: none. Valid until the next call that changes the plan.
  const Server* Find(const ServerAddress& address) const;
  // Whether the address is wanted on the device.
  bool Bound(const IpAddress& ip) const { return vips_.contains(ip) && !own_ips_.contains(ip); }
  // The Service that has the address; empty: none.
  std::string OwnerOf(const ServerAddress& address) const;
  // Everything counts as changed, for a caller that compares all servers and addresses.
  void StartOver();

 private:
  struct Claim {
    std::string owner;
    Server server;
  };
  struct Contribution {
    std::map<ServerAddress, Server> servers;  // a NodePort's address is unspecified
    std::set<IpAddress> vips;
  };
  Contribution ContributionOf(const std::vector<ResolvedPort>& ports) const;
  const Claim* FindClaim(const ServerAddress& address) const;
  void Touch(const ServerAddress& address);
  void Replace(const std::string& key, Contribution now);

  const bool v4_;
  struct Owned {
    std::vector<ServerAddress> servers;
    std::vector<IpAddress> vips;
  };
  std::unordered_map<std::string, Owned> owners_;
  std::map<ServerAddress, std::vector<Claim>> claims_;
  std::map<IpAddress, int> vips_;  // Services that have it
  std::set<IpAddress> node_ips_, own_ips_;
  std::set<ServerAddress> changed_servers_;
  std::set<IpAddress> changed_ips_;
};

}  // namespace keelson::proxy::ipvs
