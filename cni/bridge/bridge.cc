#include "cni/bridge/bridge.h"

#include "cni/bridge/add.h"
#include "cni/bridge/config.h"
#include "cni/bridge/container.h"
#include "cni/bridge/sender_check.h"
#include "cni/bridge/vlan.h"
#include "cni/lib/delegate.h"
#include "cni/lib/label.h"
#include "cni/lib/link_removal.h"
#include "cni/lib/netns_socket.h"

namespace keelson::cni {
namespace {

CniError CheckFailed(std::string message) { return {kCheckFailed, std::move(message), ""}; }

Outcome<> DeleteInterface(const Request& request) {
  if (request.netns.empty()) return {};
  Result<linux::NetNs> netns = linux::NetNs::Open(request.netns);
  // The namespace's devices are gone with it, or will be.
  if (!netns && (netns.error().Is(Code::kNotFound) || netns.error().Is(Code::kInvalid))) return {};
  if (!netns) return netns.error();
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket child, OpenSocketIn(*netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket own, OpenSocketIn(*netns));
  return RemoveLink(child, own, request.ifname);
}

// Removes the interface before it releases its address, and releases the address even if that fails.
Outcome<> Del(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  Outcome<> deleted = DeleteInterface(request);
  if (!config.ipam.empty()) KEELSON_RETURN_IF_ERROR(Delegate(config.ipam, "DEL", request));
  if (config.check_mac) {
    std::string mine = LabelOf(request);
    KEELSON_RETURN_IF_ERROR(RemoveSenders([&](std::string_view label) { return label == mine; }));
  }
  return deleted;
}

Outcome<> CheckPort(netlink::Socket& host, const netlink::Link& port, const netlink::Link& inside,
                    const BridgeConfig& config) {
  if (config.hairpin && !port.hairpin) return CheckFailed(port.name + " is not in hairpin mode");
  if (config.isolated && !port.isolated) return CheckFailed(port.name + " is not isolated");
  if (config.FiltersVlans()) KEELSON_RETURN_IF_ERROR(CheckPortVlans(host, port.index, config));
  if (config.check_mac) KEELSON_RETURN_IF_ERROR(VerifySender(port.name, inside.mac));
  return {};
}

// Compares the container's interface with the result of ADD.
Outcome<> CheckInside(const Request& request, const netlink::Link& inside) {
  for (const Interface& interface : request.prev_result->interfaces) {
    if (interface.name != request.ifname || interface.sandbox.empty()) continue;
    if (!interface.mac.empty() && interface.mac != inside.mac.ToString()) {
      return CheckFailed(request.ifname + " has MAC address " + inside.mac.ToString() + ", not " +
                         interface.mac);
    }
  }
  return {};
}

Outcome<> Check(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  if (!config.ipam.empty()) KEELSON_RETURN_IF_ERROR(Delegate(config.ipam, "CHECK", request));
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Open(request.netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket container, OpenSocketIn(netns));
  Result<netlink::Link> bridge = netlink::GetLink(host, config.bridge);
  if (!bridge || bridge->kind != "bridge") return CheckFailed("bridge " + config.bridge + " is missing");
  if (config.promisc && !bridge->promisc) {
    return CheckFailed("bridge " + config.bridge + " is not promiscuous");
  }
  Result<netlink::Link> inside = netlink::GetLink(container, request.ifname);
  if (!inside || inside->kind != "veth") {
    return CheckFailed("container has no veth interface " + request.ifname);
  }
  Result<netlink::Link> port = netlink::GetLink(host, inside->peer_index);
  if (!port || port->master != bridge->index) {
    return CheckFailed(request.ifname + " is not connected to " + config.bridge);
  }
  KEELSON_RETURN_IF_ERROR(CheckPort(host, *port, *inside, config));
  KEELSON_RETURN_IF_ERROR(CheckInside(request, *inside));
  return CheckContainer(container, *inside, *request.prev_result);
}

// Interfaces go with their namespaces. Addresses and nftables elements can outlive them.
Outcome<> Gc(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  if (config.check_mac) {
    StaleLabels stale(request);
    KEELSON_RETURN_IF_ERROR(RemoveSenders([&](std::string_view label) { return stale.Contains(label); }));
  }
  return config.ipam.empty() ? Outcome<>() : Delegate(config.ipam, "GC", request);
}

Outcome<> Status(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(BridgeConfig config, ReadBridgeConfig(request));
  return config.ipam.empty() ? Outcome<>() : Delegate(config.ipam, "STATUS", request);
}

}  // namespace

Plugin BridgePlugin() {
  return {.about = "CNI bridge plugin",
          .add = AddToBridge,
          .del = Del,
          .check = Check,
          .status = Status,
          .gc = Gc};
}

}  // namespace keelson::cni
