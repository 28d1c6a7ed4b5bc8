// Which virtual servers there should be, and which addresses should be this node's own, in one address
// family. Pure: no kernel, no clock.
//
// What is told is what has changed: TakeServers and TakeAddresses name the places to look at, Find and Bound
// say what should be there. Two Services may claim one address and port: the first keeps it, and the next one
// gets it when the first has gone. NodePorts are virtual servers on each of the node's addresses.
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
  std::vector<Target> targets;  // sorted, each once; never none
  bool operator==(const Server&) const = default;
};

class Plan {
 public:
  explicit Plan(bool v4) : v4_(v4) {}

  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports);  // no ports: gone
  void SetNodeIps(const std::vector<IpAddress>& ips);                               // where NodePorts answer
  // This machine's addresses, which are not to be given to it once more.
  void SetOwnIps(const std::vector<IpAddress>& ips);

  std::set<ServerAddress> TakeServers();
  std::set<IpAddress> TakeAddresses();
  // What should be there; null: nothing.
  const Server* Find(const ServerAddress& address) const;
  bool Bound(const IpAddress& ip) const { return vips_.contains(ip) && !own_ips_.contains(ip); }
  // Whose it is; empty: nobody's.
  std::string OwnerOf(const ServerAddress& address) const;
  // For who compares all that is there with all that should be: names everything once more.
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
