#include "proxy/ipvs/testing/fake_kernel.h"

namespace keelson::proxy::ipvs {

using netlink::Destination;
using netlink::FoundDestination;
using netlink::ServerAddress;
using netlink::VirtualServer;

std::string FakeState::Text() const {
  std::string out;
  for (const auto& [address, server] : servers) {
    out += address.ToString() + " " + server.server.scheduler;
    if (server.server.affinity.count() > 0) {
      out += " sticky " + std::to_string(server.server.affinity.count());
    }
    for (const auto& [target, found] : server.destinations) {
      out += (target == server.destinations.begin()->first ? " -> " : " ") + target.first.ToString() + ":" +
             std::to_string(target.second);
      if (found.destination.weight != 1) out += "*" + std::to_string(found.destination.weight);
    }
    out += "\n";
  }
  for (const IpAddress& ip : bound) out += ip.ToString() + "\n";
  return out;
}

Result<FakeState::Server*> FakeKernel::Find(const ServerAddress& server) {
  auto found = state_.servers.find(server);
  if (found == state_.servers.end()) return Error::FromErrno(ESRCH, server.ToString());
  return &found->second;
}

Result<std::vector<netlink::FoundServer>> FakeKernel::Servers() {
  std::vector<netlink::FoundServer> out;
  for (const auto& [address, server] : state_.servers) out.push_back({server.server, {}});
  return out;
}

Result<std::vector<FoundDestination>> FakeKernel::Destinations(const ServerAddress& server) {
  std::vector<FoundDestination> out;
  auto found = state_.servers.find(server);
  if (found == state_.servers.end()) return out;
  for (const auto& [target, destination] : found->second.destinations) out.push_back(destination);
  return out;
}

Result<std::vector<netlink::ListedServer>> FakeKernel::List() {
  std::vector<netlink::ListedServer> out;
  for (const auto& [address, server] : state_.servers) {
    netlink::ListedServer& one =
        out.emplace_back(netlink::ListedServer{.address = address,
                                               .scheduler = server.server.scheduler,
                                               .sticky = server.server.affinity.count() > 0});
    for (const auto& [target, found] : server.destinations) {
      one.destinations.push_back({found.destination, found.translates});
    }
  }
  return out;
}

Result<> FakeKernel::AddServer(const VirtualServer& server) {
  if (state_.refused == server.address.ip) return Error::FromErrno(EINVAL, server.address.ToString());
  if (state_.servers.contains(server.address)) return Error::FromErrno(EEXIST, server.address.ToString());
  state_.servers[server.address].server = server;
  ++state_.writes;
  return {};
}

Result<> FakeKernel::ChangeServer(const VirtualServer& server) {
  KEELSON_ASSIGN_OR_RETURN(FakeState::Server * found, Find(server.address));
  found->server = server;
  ++state_.writes;
  return {};
}

Result<bool> FakeKernel::DeleteServer(const ServerAddress& server) {
  ++state_.writes;
  return state_.servers.erase(server) > 0;
}

Result<> FakeKernel::AddDestination(const ServerAddress& server, const Destination& destination) {
  KEELSON_ASSIGN_OR_RETURN(FakeState::Server * found, Find(server));
  FoundDestination one;
  one.destination = destination;
  if (!found->destinations.try_emplace({destination.ip, destination.port}, one).second) {
    return Error::FromErrno(EEXIST, destination.ip.ToString());
  }
  ++state_.writes;
  return {};
}

Result<> FakeKernel::ChangeDestination(const ServerAddress& server, const Destination& destination) {
  KEELSON_ASSIGN_OR_RETURN(FakeState::Server * found, Find(server));
  auto one = found->destinations.find({destination.ip, destination.port});
  if (one == found->destinations.end()) return Error::FromErrno(ENOENT, destination.ip.ToString());
  one->second.destination = destination;
  one->second.translates = true;
  ++state_.writes;
  return {};
}

Result<bool> FakeKernel::DeleteDestination(const ServerAddress& server, const IpAddress& ip, uint16_t port) {
  auto found = state_.servers.find(server);
  ++state_.writes;
  return found != state_.servers.end() && found->second.destinations.erase({ip, port}) > 0;
}

Result<> FakeKernel::Bind(const IpAddress& ip) {
  state_.device = true;
  state_.bound.insert(ip);
  ++state_.writes;
  return {};
}

Result<> FakeKernel::Unbind(const IpAddress& ip) {
  state_.bound.erase(ip);
  ++state_.writes;
  return {};
}

Result<> FakeKernel::RemoveDevice() {
  state_.device = false;
  state_.bound.clear();
  ++state_.writes;
  return {};
}

Result<> FakeKernel::ForgetFlows(bool, const std::set<ServerAddress>& servers) {
  state_.forgotten.insert(servers.begin(), servers.end());
  return {};
}

}  // namespace keelson::proxy::ipvs
