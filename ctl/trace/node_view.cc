#include "ctl/trace/node_view.h"

#include <algorithm>
#include <map>

#include "lib/base/file.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route_lookup.h"

namespace keelson::ctl {
namespace {

class LiveNode : public NodeView {
 public:
  LiveNode(netlink::Socket socket, netlink::Socket netfilter, ProxySettings settings)
      : socket_(std::move(socket)), netfilter_(std::move(netfilter)), settings_(std::move(settings)) {}

  Result<> Read() {
    KEELSON_ASSIGN_OR_RETURN(ebpf_, ReadEbpfMaps(settings_.pin_directory));
    KEELSON_ASSIGN_OR_RETURN(
        tables_, nft::ReadLiveTables({nft::Family::kInet, nft::Family::kIpv4, nft::Family::kIpv6}));
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Address> addresses, netlink::ListAddresses(socket_));
    for (const netlink::Address& address : addresses) {
      const IpAddress& ip = address.prefix.address();
      if (!ip.IsLoopback() && !ip.IsLinkLocal()) addresses_.push_back(ip);
    }
    // To ask a kernel for IPVS loads its module: only where it is in use.
    if (!ReadFile("/proc/thread-self/net/ip_vs")) return {};
    KEELSON_ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundServer> servers, ipvs.Servers());
    for (const netlink::FoundServer& found : servers) {
      schedulers_[found.server.address] = found.server.scheduler;
    }
    ipvs_ = std::move(ipvs);
    return {};
  }

  const std::vector<nft::LiveTable>& tables() const override { return tables_; }
  const std::vector<IpAddress>& addresses() const override { return addresses_; }
  const std::vector<EbpfMaps>& ebpf() const override { return ebpf_; }
  uint32_t masquerade_mark() const override { return 1u << settings_.masquerade_bit; }

  Result<Hop> Route(const IpAddress& to) override {
    KEELSON_ASSIGN_OR_RETURN(netlink::Route route, netlink::LookUpRoute(socket_, to));
    Hop out{.local = IsLocal(to), .gateway = route.gateway, .source = route.source};
    KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket_, route.link_index));
    out.link = link.name;
    return out;
  }

  Result<std::vector<netlink::Flow>> Flows(bool v4, uint8_t protocol) override {
    return netlink::ListFlows(netfilter_, v4, protocol);
  }

  std::optional<Balancer> FindBalancer(const netlink::ServerAddress& address) override {
    auto found = schedulers_.find(address);
    if (found == schedulers_.end()) return std::nullopt;
    Result<std::vector<netlink::FoundDestination>> destinations = ipvs_->Destinations(address);
    return Balancer{found->second, destinations.value_or(std::vector<netlink::FoundDestination>())};
  }

 private:
  netlink::Socket socket_, netfilter_;
  const ProxySettings settings_;
  std::vector<nft::LiveTable> tables_;
  std::vector<EbpfMaps> ebpf_;
  std::vector<IpAddress> addresses_;
  std::optional<netlink::Ipvs> ipvs_;
  std::map<netlink::ServerAddress, std::string> schedulers_;
};

}  // namespace

bool NodeView::IsLocal(const IpAddress& ip) const {
  return ip.IsLoopback() || std::find(addresses().begin(), addresses().end(), ip) != addresses().end();
}

const EbpfMaps* NodeView::Ebpf(bool v4) const {
  for (const EbpfMaps& maps : ebpf()) {
    if (maps.v4 == v4) return &maps;
  }
  return nullptr;
}

Result<std::unique_ptr<NodeView>> ReadNode(const ProxySettings& settings) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket netfilter, netlink::Socket::OpenNetfilter());
  auto out = std::make_unique<LiveNode>(std::move(socket), std::move(netfilter), settings);
  KEELSON_RETURN_IF_ERROR(out->Read());
  return std::unique_ptr<NodeView>(std::move(out));
}

}  // namespace keelson::ctl
