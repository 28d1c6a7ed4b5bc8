#include "cni/loopback/loopback.h"

#include "cni/lib/netns_socket.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"

namespace keelson::cni {
namespace {

struct Loopback {
  netlink::Socket socket;
  netlink::Link link;
};

Outcome<Loopback> Find(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Open(request.netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, OpenSocketIn(netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket, "lo"));
  return Loopback{std::move(socket), std::move(link)};
}

Outcome<AddResult> Add(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(Loopback lo, Find(request));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(lo.socket, lo.link.index));
  if (request.prev_result) return *request.prev_result;
  AddResult result;
  result.interfaces.push_back({.name = "lo", .mac = lo.link.mac.ToString(), .sandbox = request.netns});
  KEELSON_ASSIGN_OR_RETURN(auto addresses, netlink::ListAddresses(lo.socket, lo.link.index));
  for (const netlink::Address& address : addresses) {
    result.ips.push_back({.address = address.prefix, .interface = 0});
  }
  return result;
}

Outcome<> Del(const Request& request) {
  if (request.netns.empty()) return {};
  Outcome<Loopback> lo = Find(request);
  // Nothing to do if the namespace is gone, or the kernel is removing its devices.
  if (lo) KEELSON_RETURN_IF_ERROR(netlink::ChangeLink(lo->socket, lo->link.index, {.up = false}));
  return {};
}

Outcome<> Check(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(Loopback lo, Find(request));
  if (!lo.link.up) return CniError{kCheckFailed, "loopback interface is down", ""};
  return {};
}

}  // namespace

Plugin LoopbackPlugin() { return {.about = "CNI loopback plugin", .add = Add, .del = Del, .check = Check}; }

}  // namespace keelson::cni
