#include "cni/bridge/add.h"

#include "cni/bridge/config.h"
#include "cni/bridge/container.h"
#include "cni/bridge/host.h"
#include "cni/bridge/masquerade.h"
#include "cni/bridge/sender_check.h"
#include "cni/bridge/vlan.h"
#include "cni/lib/delegate.h"
#include "cni/lib/label.h"
#include "cni/lib/netns_socket.h"
#include "lib/linux/sysctl.h"

namespace keelson::cni {
namespace {

bool HasDefaultRoute(const AddResult& result, bool v4) {
  for (const RouteConfig& route : result.routes) {
    if (route.destination.length() == 0 && route.destination.is_v4() == v4) return true;
  }
  return false;
}

bool HasV6(const AddResult& result) {
  for (const IpConfig& ip : result.ips) {
    if (!ip.address.is_v4()) return true;
  }
  return false;
}

// One ADD. Unless it has completed, the destructor undoes what it made.
class Adding {
 public:
  Adding(const Request& request, BridgeConfig config, linux::NetNs netns, netlink::Socket host,
         netlink::Socket container)
      : request_(request),
        config_(std::move(config)),
        netns_(std::move(netns)),
        host_(std::move(host)),
        container_(std::move(container)) {}
  Adding(const Adding&) = delete;
  Adding& operator=(const Adding&) = delete;
  ~Adding() {
    if (done_) return;
    if (veth_made_) (void)netlink::DeleteLink(container_, request_.ifname);
    if (sender_checked_) {
      std::string mine = LabelOf(request_);
      (void)RemoveSenders([&](std::string_view label) { return label == mine; });
    }
    if (ipam_asked_) (void)Delegate(config_.ipam, "DEL", request_);
  }

  Outcome<AddResult> Run() {
    if (netlink::GetLink(container_, request_.ifname)) {
      return CniError{kInvalidEnvironment, "container has an interface named " + request_.ifname + " already",
                      ""};
    }
    KEELSON_ASSIGN_OR_RETURN(netlink::Link bridge, EnsureBridge(host_, config_));
    AddResult result;
    if (!config_.ipam.empty()) {
      ipam_asked_ = true;
      KEELSON_ASSIGN_OR_RETURN(result, DelegateAdd(config_.ipam, request_));
      if (result.ips.empty()) return CniError{kInvalidConfig, "IPAM plugin returned missing IP config", ""};
    }
    result.interfaces.clear();
    std::optional<Interface> vlan_gateway;
    KEELSON_RETURN_IF_ERROR(SetGateways(bridge, result, vlan_gateway));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link port, MakeVeth(bridge, result));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link inside, netlink::GetLink(container_, request_.ifname));
    KEELSON_RETURN_IF_ERROR(SetPort(port, inside));
    if (!config_.leave_down) KEELSON_RETURN_IF_ERROR(Configure(inside, result));
    if (config_.masquerade) {
      for (const IpConfig& ip : result.ips) KEELSON_RETURN_IF_ERROR(EnsureMasquerade(ip.address.Masked()));
    }
    if (!config_.leave_down) {
      KEELSON_ASSIGN_OR_RETURN(port, AwaitPort(host_, port.index));
    }
    // A bridge that somebody else made may have taken its port's MAC address.
    KEELSON_ASSIGN_OR_RETURN(netlink::Link now, netlink::GetLink(host_, bridge.index));
    result.interfaces = {
        {.name = now.name, .mac = now.mac.ToString(), .mtu = now.mtu},
        {.name = port.name, .mac = port.mac.ToString(), .mtu = port.mtu},
        {.name = inside.name, .mac = inside.mac.ToString(), .sandbox = request_.netns, .mtu = inside.mtu}};
    if (vlan_gateway) result.interfaces.push_back(*vlan_gateway);
    for (IpConfig& ip : result.ips) ip.interface = 2;
    if (!config_.dns.empty()) result.dns = config_.dns;
    done_ = true;
    return result;
  }

 private:
  // When this bridge is the gateway, addresses without a gateway get the first address of their subnet.
  Outcome<> SetGateways(const netlink::Link& bridge, AddResult& result,
                        std::optional<Interface>& vlan_gateway) {
    if (!config_.is_gateway || result.ips.empty()) return {};
    netlink::Link gateway = bridge;
    if (config_.vlan != 0) {
      KEELSON_ASSIGN_OR_RETURN(gateway, EnsureVlanGateway(host_, bridge, config_));
      vlan_gateway = Interface{.name = gateway.name, .mac = gateway.mac.ToString(), .mtu = gateway.mtu};
    }
    for (IpConfig& ip : result.ips) {
      if (!ip.gateway) ip.gateway = ip.address.Network().Plus(1);
      IpPrefix address(*ip.gateway, ip.address.length());
      KEELSON_RETURN_IF_ERROR(EnsureGateway(host_, gateway, address, config_.force_address));
      if (config_.is_default_gateway && !HasDefaultRoute(result, ip.address.is_v4())) {
        IpAddress zero = IpAddress::FromBytes(std::string(ip.address.address().bytes().size(), '\0'));
        result.routes.push_back({.destination = IpPrefix(zero, 0), .gateway = ip.gateway});
      }
    }
    return {};
  }

  Outcome<netlink::Link> MakeVeth(const netlink::Link& bridge, const AddResult& result) {
    netlink::VethEnd inside{.name = request_.ifname, .mac = config_.mac, .netns_fd = netns_.fd()};
    if (!inside.mac && !result.ips.empty()) inside.mac = MacFor(result.ips[0].address.address());
    std::string name;
    for (int attempt = 0;; ++attempt) {
      name = RandomVethName();
      Result<> made =
          netlink::CreateVeth(host_, {.name = name, .master = bridge.index, .up = true}, inside, config_.mtu);
      if (made) break;
      if (!made.error().Is(Code::kAlreadyExists) || attempt == 9) return made.error();
    }
    veth_made_ = true;
    KEELSON_ASSIGN_OR_RETURN(netlink::Link port, netlink::GetLink(host_, name));
    return port;
  }

  // Configures the port before the container can send any frame.
  Outcome<> SetPort(const netlink::Link& port, const netlink::Link& inside) {
    netlink::PortChange change;
    if (config_.hairpin) change.hairpin = true;
    if (config_.isolated) change.isolated = true;
    if (change.hairpin || change.isolated) {
      KEELSON_RETURN_IF_ERROR(netlink::ChangePort(host_, port.index, change));
    }
    if (config_.FiltersVlans()) KEELSON_RETURN_IF_ERROR(SetPortVlans(host_, port.index, config_));
    if (!config_.check_mac) return {};
    sender_checked_ = true;
    return CheckSender(port.name, inside.mac, LabelOf(request_));
  }

  Outcome<> Configure(const netlink::Link& inside, const AddResult& result) {
    if (HasV6(result)) {
      KEELSON_RETURN_IF_ERROR(netns_.RunHere(
          [&] { return linux::EnsureSysctl("net/ipv6/conf/" + request_.ifname + "/disable_ipv6", "0"); }));
    }
    return ConfigureContainer(container_, inside, result);
  }

  const Request& request_;
  BridgeConfig config_;
  linux::NetNs netns_;
  netlink::Socket host_, container_;
  bool ipam_asked_ = false, veth_made_ = false, sender_checked_ = false, done_ = false;
};

}  // namespace

Outcome<AddResult> AddToBridge(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Open(request.netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket container, OpenSocketIn(netns));
  return Adding(request, std::move(config), std::move(netns), std::move(host), std::move(container)).Run();
}

}  // namespace keelson::cni
