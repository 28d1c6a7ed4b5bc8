// What the IPVS dataplane writes to, besides its nftables table: virtual servers, and the device that holds
// Services' addresses. The kernel's, or a fake (testing/fake_kernel.h). Not thread safe.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "lib/netlink/ipvs_list.h"

namespace keelson::proxy::ipvs {

inline constexpr char kDevice[] = "kube-ipvs0";

class Kernel {
 public:
  virtual ~Kernel() = default;

  // As in netlink::Ipvs.
  virtual Result<std::vector<netlink::FoundServer>> Servers() = 0;
  virtual Result<std::vector<netlink::FoundDestination>> Destinations(
      const netlink::ServerAddress& server) = 0;
  virtual Result<> AddServer(const netlink::VirtualServer& server) = 0;
  virtual Result<> ChangeServer(const netlink::VirtualServer& server) = 0;
  virtual Result<bool> DeleteServer(const netlink::ServerAddress& server) = 0;
  virtual Result<> AddDestination(const netlink::ServerAddress& server,
                                  const netlink::Destination& destination) = 0;
  virtual Result<> ChangeDestination(const netlink::ServerAddress& server,
                                     const netlink::Destination& destination) = 0;
  virtual Result<bool> DeleteDestination(const netlink::ServerAddress& server, const IpAddress& ip,
                                         uint16_t port) = 0;

  // Addresses on the device, of both families; none where there is no device.
  virtual Result<std::set<IpAddress>> Bound() = 0;
  // Adds an address to the device, which is made if there is none, or removes it. An address that is there
  // already, or not there, is fine.
  virtual Result<> Bind(const IpAddress& ip) = 0;
  virtual Result<> Unbind(const IpAddress& ip) = 0;
  // Absent is fine.
  virtual Result<> RemoveDevice() = 0;

  // All servers with their destinations, without connection counts, in one request.
  virtual Result<std::vector<netlink::ListedServer>> List() = 0;

  // Local addresses of this namespace's connected sockets.
  virtual Result<std::set<IpAddress>> ConnectedFrom() = 0;
  // Removes UDP flows to these servers from connection tracking: the next packet is translated anew.
  virtual Result<> ForgetFlows(bool v4, const std::set<netlink::ServerAddress>& servers) = 0;
};

// The kernel, in the calling thread's network namespace. Needs CAP_NET_ADMIN.
Result<std::unique_ptr<Kernel>> OpenKernel();

}  // namespace keelson::proxy::ipvs
