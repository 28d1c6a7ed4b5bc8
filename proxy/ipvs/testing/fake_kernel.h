// For tests: virtual servers and addresses in memory, with the kernel's answers to what is there already or
// not there. Held to the same test as the kernel (kernel_test.cc).
#pragma once

#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proxy/ipvs/kernel.h"

namespace keelson::proxy::ipvs {

// What outlives a proxy.
struct FakeState {
  struct Server {
    netlink::VirtualServer server;
    std::map<std::pair<IpAddress, uint16_t>, netlink::FoundDestination> destinations;
  };
  std::map<netlink::ServerAddress, Server> servers;
  std::set<IpAddress> bound;
  bool device = false;
  std::set<IpAddress> connected_from;
  std::set<netlink::ServerAddress> forgotten;  // whose UDP flows conntrack was told to forget
  int writes = 0;
  std::optional<IpAddress> refused;  // servers at this address are not taken

  // "TCP 10.96.0.1:80 rr -> 10.1.0.1:8080*0 10.1.0.2:8080", a line a server; then bound addresses.
  std::string Text() const;
};

class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(FakeState& state) : state_(state) {}

  Result<std::vector<netlink::FoundServer>> Servers() override;
  Result<std::vector<netlink::FoundDestination>> Destinations(const netlink::ServerAddress& server) override;
  Result<> AddServer(const netlink::VirtualServer& server) override;
  Result<> ChangeServer(const netlink::VirtualServer& server) override;
  Result<bool> DeleteServer(const netlink::ServerAddress& server) override;
  Result<> AddDestination(const netlink::ServerAddress& server,
                          const netlink::Destination& destination) override;
  Result<> ChangeDestination(const netlink::ServerAddress& server,
                             const netlink::Destination& destination) override;
  Result<bool> DeleteDestination(const netlink::ServerAddress& server, const IpAddress& ip,
                                 uint16_t port) override;
  Result<std::set<IpAddress>> Bound() override { return state_.bound; }
  Result<> Bind(const IpAddress& ip) override;
  Result<> Unbind(const IpAddress& ip) override;
  Result<> RemoveDevice() override;
  Result<std::vector<netlink::ListedServer>> List() override;
  Result<std::set<IpAddress>> ConnectedFrom() override { return state_.connected_from; }
  Result<> ForgetFlows(bool v4, const std::set<netlink::ServerAddress>& servers) override;

 private:
  Result<FakeState::Server*> Find(const netlink::ServerAddress& server);
  FakeState& state_;
};

}  // namespace keelson::proxy::ipvs
