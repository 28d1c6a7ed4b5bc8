#include "proxy/ipvs/kernel.h"

#include <netinet/in.h>

#include "lib/netlink/addr.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/link.h"

namespace keelson::proxy::ipvs {
namespace {

using netlink::Destination;
using netlink::ServerAddress;
using netlink::VirtualServer;

class RealKernel final : public Kernel {
 public:
  RealKernel(netlink::Ipvs ipvs, netlink::IpvsList list, netlink::Socket route, netlink::Socket netfilter,
             std::vector<linux::ProcNetFile> connections)
      : ipvs_(std::move(ipvs)),
        list_(std::move(list)),
        route_(std::move(route)),
        netfilter_(std::move(netfilter)),
        connections_(std::move(connections)) {}

  Result<std::vector<netlink::FoundServer>> Servers() override { return ipvs_.Servers(); }
  Result<std::vector<netlink::FoundDestination>> Destinations(const ServerAddress& server) override {
    return ipvs_.Destinations(server);
  }
  Result<> AddServer(const VirtualServer& server) override { return ipvs_.AddServer(server); }
  Result<> ChangeServer(const VirtualServer& server) override { return ipvs_.ChangeServer(server); }
  Result<bool> DeleteServer(const ServerAddress& server) override { return ipvs_.DeleteServer(server); }
  Result<> AddDestination(const ServerAddress& server, const Destination& destination) override {
    return ipvs_.AddDestination(server, destination);
  }
  Result<> ChangeDestination(const ServerAddress& server, const Destination& destination) override {
    return ipvs_.ChangeDestination(server, destination);
  }
  Result<bool> DeleteDestination(const ServerAddress& server, const IpAddress& ip, uint16_t port) override {
    return ipvs_.DeleteDestination(server, ip, port);
  }

  Result<std::set<IpAddress>> Bound() override {
    std::set<IpAddress> out;
    Result<netlink::Link> link = netlink::GetLink(route_, kDevice);
    if (!link && link.error().Is(Code::kNotFound)) return out;
    if (!link) return link.error();
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Address> found,
                             netlink::ListAddresses(route_, link->index));
    for (const netlink::Address& address : found) {
      if (!address.prefix.address().IsLinkLocal()) out.insert(address.prefix.address());
    }
    return out;
  }

  Result<> Bind(const IpAddress& ip) override {
    KEELSON_ASSIGN_OR_RETURN(int device, Device());
    Result<> added = netlink::AddAddress(route_, device, IpPrefix::Host(ip));
    if (!added && !added.error().Is(Code::kAlreadyExists)) return Lost(added.error());
    return {};
  }

  Result<> Unbind(const IpAddress& ip) override {
    KEELSON_ASSIGN_OR_RETURN(int device, Device());
    Result<> gone = netlink::DeleteAddress(route_, device, IpPrefix::Host(ip));
    if (!gone && !gone.error().Is(Code::kNotFound)) return Lost(gone.error());
    return {};
  }

  Result<> RemoveDevice() override {
    device_ = 0;
    KEELSON_RETURN_IF_ERROR(netlink::DeleteLink(route_, kDevice));
    return {};
  }

  Result<std::vector<netlink::ListedServer>> List() override { return list_.Read(); }

  Result<std::set<IpAddress>> ConnectedFrom() override {
    std::set<IpAddress> out;
    for (const linux::ProcNetFile& file : connections_) {
      KEELSON_ASSIGN_OR_RETURN(std::string text, file.Read());
      linux::AddConnectedAddresses(text, out);
    }
    return out;
  }

  Result<> ForgetFlows(bool v4, const std::set<ServerAddress>& servers) override {
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Flow> flows,
                             netlink::ListFlows(netfilter_, v4, IPPROTO_UDP));
    for (const netlink::Flow& flow : flows) {
      if (!servers.contains({flow.protocol, flow.destination, flow.destination_port})) continue;
      KEELSON_RETURN_IF_ERROR(netlink::DeleteFlow(netfilter_, flow));
    }
    return {};
  }

 private:
  Result<int> Device() {
    if (device_ != 0) return device_;
    Result<netlink::Link> link = netlink::GetLink(route_, kDevice);
    if (!link && link.error().Is(Code::kNotFound)) {
      KEELSON_RETURN_IF_ERROR(netlink::CreateDummy(route_, kDevice));
      link = netlink::GetLink(route_, kDevice);
    }
    if (!link) return link.error();
    return device_ = link->index;
  }
  // Perhaps somebody has removed the device: the next call looks.
  Error Lost(const Error& why) {
    device_ = 0;
    return why;
  }

  netlink::Ipvs ipvs_;
  netlink::IpvsList list_;
  netlink::Socket route_, netfilter_;
  std::vector<linux::ProcNetFile> connections_;  // lists of sockets
  int device_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> OpenKernel() {
  KEELSON_ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket route, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket netfilter, netlink::Socket::OpenNetfilter());
  KEELSON_ASSIGN_OR_RETURN(netlink::IpvsList list, netlink::IpvsList::Open());
  std::vector<linux::ProcNetFile> connections;
  for (const char* name : {"tcp", "tcp6", "udp", "udp6"}) {
    Result<linux::ProcNetFile> file = linux::ProcNetFile::Open(name);
    if (!file && file.error().Is(Code::kNotFound)) continue;
    if (!file) return file.error();
    connections.push_back(std::move(*file));
  }
  return std::unique_ptr<Kernel>(std::make_unique<RealKernel>(
      std::move(ipvs), std::move(list), std::move(route), std::move(netfilter), std::move(connections)));
}

}  // namespace keelson::proxy::ipvs
