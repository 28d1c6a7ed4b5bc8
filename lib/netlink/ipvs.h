// The kernel's virtual servers (IPVS): generic netlink, family IPVS. The module is not everywhere:
// kUnimplemented then, which names what is missing.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

// What connections are opened to.
struct ServerAddress {
  uint8_t protocol = 6;
  IpAddress ip;
  uint16_t port = 0;
  auto operator<=>(const ServerAddress&) const = default;
  std::string ToString() const;  // "TCP 10.96.0.1:80"
};

// What a scheduler makes of them is its own (ip_vs.h, IP_VS_SVC_F_SCHED_*).
inline constexpr uint32_t kSchedulerFlag1 = 8, kSchedulerFlag2 = 16, kSchedulerFlag3 = 32;

struct VirtualServer {
  ServerAddress address;
  std::string scheduler = "rr";      // rr, wrr, lc, wlc, sh, mh, sed, nq, dh, ...
  uint32_t scheduler_flags = 0;      // kSchedulerFlag...
  std::chrono::seconds affinity{0};  // a client stays with a destination for so long; 0: it does not
  bool operator==(const VirtualServer&) const = default;
};

struct TrafficStats {
  uint64_t connections = 0, packets_in = 0, packets_out = 0, bytes_in = 0, bytes_out = 0;
};

struct FoundServer {
  VirtualServer server;
  TrafficStats stats;
};

// Whom connections are translated to (masquerading: the kernel changes address and port, both ways).
struct Destination {
  IpAddress ip;
  uint16_t port = 0;
  uint32_t weight = 1;  // 0: gets no new connections
  bool operator==(const Destination&) const = default;
};

struct FoundDestination {
  Destination destination;
  bool translates = true;                             // false: somebody has set up another way of forwarding
  uint32_t active = 0, inactive = 0, persistent = 0;  // connections, and clients that stay with it
  TrafficStats stats;
};

// After so long without a packet a connection is forgotten. 0 leaves a time as it is.
struct IpvsTimeouts {
  std::chrono::seconds tcp{0}, tcp_fin{0}, udp{0};
};

// Of one network namespace. Not thread safe. Each call is one request, of which the kernel does all or
// nothing.
class Ipvs {
 public:
  static Result<Ipvs> Open();  // in the calling thread's namespace

  Result<std::vector<FoundServer>> Servers();
  // None when there is no such server.
  Result<std::vector<FoundDestination>> Destinations(const ServerAddress& server);

  // kAlreadyExists; kUnimplemented when the kernel has no such scheduler.
  Result<> AddServer(const VirtualServer& server);
  Result<> ChangeServer(const VirtualServer& server);
  Result<bool> DeleteServer(const ServerAddress& server);  // false: there was none

  Result<> AddDestination(const ServerAddress& server, const Destination& destination);  // kAlreadyExists
  Result<> ChangeDestination(const ServerAddress& server, const Destination& destination);
  // Its connections end with it. False: there was none.
  Result<bool> DeleteDestination(const ServerAddress& server, const IpAddress& ip, uint16_t port);

  Result<IpvsTimeouts> Timeouts();
  Result<> SetTimeouts(const IpvsTimeouts& timeouts);
  Result<> Flush();  // all servers go

 private:
  Ipvs(Socket socket, int family) : socket_(std::move(socket)), family_(family) {}
  Socket socket_;
  int family_;
};

}  // namespace keelson::netlink
