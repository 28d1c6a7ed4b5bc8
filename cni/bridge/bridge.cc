#include "cni/bridge/bridge.h"

#include <sys/random.h>

#include <cstdio>

#include "cni/bridge/config.h"
#include "cni/bridge/container.h"
#include "cni/bridge/host.h"
#include "cni/bridge/masquerade.h"
#include "cni/lib/delegate.h"
#include "cni/lib/json.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/link.h"

namespace keelson::cni {
namespace {

std::string RandomVethName() {
  uint32_t number = 0;
  (void)::getrandom(&number, sizeof number, 0);
  char name[16];
  std::snprintf(name, sizeof name, "veth%08x", number);
  return name;
}

// One ADD. What it has made is undone by the destructor unless the ADD has come to its end.
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
    if (ipam_asked_) (void)RunDelegate(config_.ipam, "DEL", request_);
  }

  Outcome<AddResult> Run() {
    if (netlink::GetLink(container_, request_.ifname)) {
      return CniError{kInvalidEnvironment, "container has an interface named " + request_.ifname + " already",
                      ""};
    }
    // The address manager runs while the bridge is looked after.
    std::optional<Delegate> ipam;
    if (!config_.ipam.empty()) {
      ASSIGN_OR_RETURN(ipam, Delegate::Start(config_.ipam, "ADD", request_));
      ipam_asked_ = true;
    }
    Outcome<netlink::Link> bridge = EnsureBridge(host_, config_);
    AddResult result;
    if (ipam) {
      ASSIGN_OR_RETURN(result, ReadAddresses(*ipam));
    }
    if (!bridge) return bridge.error();
    RETURN_IF_ERROR(SetGateways(*bridge, result));
    ASSIGN_OR_RETURN(netlink::Link port, MakeVeth(*bridge, result));
    ASSIGN_OR_RETURN(netlink::Link inside, netlink::GetLink(container_, request_.ifname));
    RETURN_IF_ERROR(ConfigureContainer(container_, inside, result));
    if (config_.masquerade) {
      for (const IpConfig& ip : result.ips) RETURN_IF_ERROR(EnsureMasquerade(ip.address.Masked()));
    }
    ASSIGN_OR_RETURN(port, AwaitPort(host_, port.index));
    ASSIGN_OR_RETURN(netlink::Link now, netlink::GetLink(host_, bridge->index));
    result.interfaces = {
        {.name = now.name, .mac = now.mac.ToString(), .mtu = now.mtu},
        {.name = port.name, .mac = port.mac.ToString(), .mtu = port.mtu},
        {.name = inside.name, .mac = inside.mac.ToString(), .sandbox = request_.netns, .mtu = inside.mtu}};
    for (IpConfig& ip : result.ips) ip.interface = 2;
    if (!config_.dns.empty()) result.dns = config_.dns;
    done_ = true;
    return result;
  }

 private:
  Outcome<AddResult> ReadAddresses(Delegate& ipam) {
    ASSIGN_OR_RETURN(std::string output, ipam.Wait());
    ASSIGN_OR_RETURN(boost::json::object json, ParseJson(output, config_.ipam + "'s result"));
    ASSIGN_OR_RETURN(AddResult result, ParseResult(json));
    if (result.ips.empty()) return CniError{kInvalidConfig, "IPAM plugin returned missing IP config", ""};
    return result;
  }

  // Addresses without a gateway get the subnet's first one as theirs when this bridge is to be it.
  Outcome<> SetGateways(const netlink::Link& bridge, AddResult& result) {
    if (!config_.is_gateway) return {};
    bool have_default_v4 = false, have_default_v6 = false;
    for (const RouteConfig& route : result.routes) {
      if (route.destination.length() == 0)
        (route.destination.is_v4() ? have_default_v4 : have_default_v6) = true;
    }
    for (IpConfig& ip : result.ips) {
      if (!ip.gateway) ip.gateway = ip.address.Network().Plus(1);
      IpPrefix address(*ip.gateway, ip.address.length());
      RETURN_IF_ERROR(EnsureGateway(host_, bridge, address, config_.force_address));
      bool& have_default = ip.address.is_v4() ? have_default_v4 : have_default_v6;
      if (config_.is_default_gateway && !have_default) {
        IpAddress zero = IpAddress::FromBytes(std::string(ip.address.address().bytes().size(), '\0'));
        result.routes.push_back({.destination = IpPrefix(zero, 0), .gateway = ip.gateway});
        have_default = true;
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
    ASSIGN_OR_RETURN(netlink::Link port, netlink::GetLink(host_, name));
    if (config_.hairpin) RETURN_IF_ERROR(netlink::ChangePort(host_, port.index, {.hairpin = true}));
    bool has_v6 = false;
    for (const IpConfig& ip : result.ips) has_v6 |= !ip.address.is_v4();
    if (has_v6) {
      RETURN_IF_ERROR(netns_.Run(
          [&] { return linux::EnsureSysctl("net/ipv6/conf/" + request_.ifname + "/disable_ipv6", "0"); }));
    }
    return port;
  }

  const Request& request_;
  BridgeConfig config_;
  linux::NetNs netns_;
  netlink::Socket host_, container_;
  bool ipam_asked_ = false, veth_made_ = false, done_ = false;
};

Outcome<AddResult> Add(const Request& request) {
  ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Open(request.netns));
  ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::Open());
  ASSIGN_OR_RETURN(netlink::Socket container, netlink::Socket::OpenIn(netns));
  return Adding(request, std::move(config), std::move(netns), std::move(host), std::move(container)).Run();
}

Outcome<> DeleteInterface(const Request& request) {
  if (request.netns.empty()) return {};
  Result<linux::NetNs> netns = linux::NetNs::Open(request.netns);
  // With the namespace its devices have gone, or will go.
  if (!netns && (netns.error().Is(Code::kNotFound) || netns.error().Is(Code::kInvalid))) return {};
  if (!netns) return netns.error();
  ASSIGN_OR_RETURN(netlink::Socket container, netlink::Socket::OpenIn(*netns));
  Result<bool> deleted = netlink::DeleteLink(container, request.ifname);
  if (!deleted) return deleted.error();
  return {};
}

// The interface goes before its address is given back, and the address even if the interface cannot go.
Outcome<> Del(const Request& request) {
  ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  Outcome<> deleted = DeleteInterface(request);
  if (!config.ipam.empty()) RETURN_IF_ERROR(RunDelegate(config.ipam, "DEL", request));
  return deleted;
}

Outcome<> Check(const Request& request) {
  ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  if (!config.ipam.empty()) RETURN_IF_ERROR(RunDelegate(config.ipam, "CHECK", request));
  ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Open(request.netns));
  ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::Open());
  ASSIGN_OR_RETURN(netlink::Socket container, netlink::Socket::OpenIn(netns));
  Result<netlink::Link> bridge = netlink::GetLink(host, config.bridge);
  if (!bridge || bridge->kind != "bridge") {
    return CniError{kCheckFailed, "bridge " + config.bridge + " is missing", ""};
  }
  Result<netlink::Link> inside = netlink::GetLink(container, request.ifname);
  if (!inside || inside->kind != "veth") {
    return CniError{kCheckFailed, "container has no veth interface " + request.ifname, ""};
  }
  Result<netlink::Link> port = netlink::GetLink(host, inside->peer_index);
  if (!port || port->master != bridge->index) {
    return CniError{kCheckFailed, request.ifname + " is not connected to " + config.bridge, ""};
  }
  return CheckContainer(container, *inside, *request.prev_result);
}

// Addresses are the only thing that can outlive a container's namespace.
Outcome<> Gc(const Request& request) {
  ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  return config.ipam.empty() ? Outcome<>() : RunDelegate(config.ipam, "GC", request);
}

Outcome<> Status(const Request& request) {
  ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  return config.ipam.empty() ? Outcome<>() : RunDelegate(config.ipam, "STATUS", request);
}

}  // namespace

Plugin BridgePlugin() {
  return {.about = "CNI bridge plugin", .add = Add, .del = Del, .check = Check, .status = Status, .gc = Gc};
}

}  // namespace keelson::cni
