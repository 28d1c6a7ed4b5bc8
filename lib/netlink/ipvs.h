// The kernel's virtual servers (IPVS): generic netlink, family IPVS. Not every kernel has the modules:
// calls then fail with kUnimplemented, which names the missing one.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

// The address that clients connect to.
struct ServerAddress {
  uint8_t protocol = 6;
  IpAddress ip;
  uint16_t port = 0;
  auto operator<=>(const ServerAddress&) const = default;
  std::string ToString() const;  // "TCP 10.96.0.1:80"
};

// Each scheduler gives its flags a meaning of its own (ip_vs.h, IP_VS_SVC_F_SCHED_*).
inline constexpr uint32_t kSchedulerFlag1 = 8, kSchedulerFlag2 = 16, kSchedulerFlag3 = 32;

struct VirtualServer {
  ServerAddress address;
  std::string scheduler = "rr";      // rr, wrr, lc, wlc, sh, mh, sed, nq, dh, ...
  uint32_t scheduler_flags = 0;      // kSchedulerFlag...
  std::chrono::seconds affinity{0};  // how long a client keeps its destination; 0: no affinity
  bool operator==(const VirtualServer&) const = default;
};

struct TrafficStats {
  uint64_t connections = 0, packets_in = 0, packets_out = 0, bytes_in = 0, bytes_out = 0;
};

struct FoundServer {
  VirtualServer server;
  TrafficStats stats;
};

// A backend that connections are sent to, by masquerading: the kernel changes address and port both ways.
struct Destination {
  IpAddress ip;
  uint16_t port = 0;
  uint32_t weight = 1;  // 0: gets no new connections
  bool operator==(const Destination&) const = default;
};

struct FoundDestination {
  Destination destination;
  bool translates = true;                             // false: another forwarding method
  uint32_t active = 0, inactive = 0, persistent = 0;  // connections; clients with affinity
  TrafficStats stats;
};

// How long a connection may be silent before the kernel forgets it. 0 keeps the current value.
struct IpvsTimeouts {
  std::chrono::seconds tcp{0}, tcp_fin{0}, udp{0};
};

// The IPVS table of one network namespace. Not thread safe. Each call is one request, which the kernel
// performs completely or not at all.
class Ipvs {
 public:
  static Result<Ipvs> Open();  // in the calling thread's namespace

  Result<std::vector<FoundServer>> Servers();
  // Empty when there is no such server.
  Result<std::vector<FoundDestination>> Destinations(const ServerAddress& server);

  // kAlreadyExists when present; kUnimplemented when the kernel has no such scheduler.
  Result<> AddServer(const VirtualServer& server);
  // kNotFound (ESRCH) when absent.
  Result<> ChangeServer(const VirtualServer& server);
  Result<bool> DeleteServer(const ServerAddress& server);  // false: there was none

  Result<> AddDestination(const ServerAddress& server, const Destination& destination);  // kAlreadyExists
  Result<> ChangeDestination(const ServerAddress& server, const Destination& destination);
  // Removes a destination, which ends its connections. False: there was none.
  Result<bool> DeleteDestination(const ServerAddress& server, const IpAddress& ip, uint16_t port);

  Result<IpvsTimeouts> Timeouts();
  Result<> SetTimeouts(const IpvsTimeouts& timeouts);
  Result<> Flush();  // deletes all servers

 private:
  Ipvs(Socket socket, int family) : socket_(std::move(socket)), family_(family) {}
  Socket socket_;
  int family_;
};

}  // namespace keelson::netlink
