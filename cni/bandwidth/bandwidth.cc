#include "cni/bandwidth/bandwidth.h"

#include "cni/bandwidth/config.h"
#include "cni/lib/label.h"
#include "cni/lib/link_removal.h"
#include "cni/lib/netns_socket.h"

namespace keelson::cni {
namespace {

CniError CheckFailed(std::string message) { return {kCheckFailed, std::move(message), ""}; }

// The host's end of the container's veth pair.
Outcome<netlink::Link> FindPort(netlink::Socket& host, const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Open(request.netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket container, OpenSocketIn(netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link inside, netlink::GetLink(container, request.ifname));
  if (inside.kind != "veth" || inside.peer_index <= 0) {
    return CniError{kInvalidConfig, "container interface " + request.ifname + " has no veth peer", ""};
  }
  KEELSON_ASSIGN_OR_RETURN(netlink::Link port, netlink::GetLink(host, inside.peer_index));
  // Indexes repeat in other namespaces: the previous plugins must have named this one.
  for (const Interface& interface : request.prev_result->interfaces) {
    if (interface.sandbox.empty() && interface.name == port.name) return port;
  }
  return CniError{kInvalidConfig, "no veth peer of container interface found in host ns", ""};
}

// What the container sends arrives at the port, which cannot queue it: redirect it through an ifb.
Outcome<netlink::Link> LimitEgress(netlink::Socket& host, const netlink::Link& port, const Limit& limit,
                                   const Request& request) {
  std::string name = IfbName(request);
  Result<> made = netlink::CreateIfb(host, name, port.mtu, LabelOf(request));
  // A leftover of an interrupted ADD.
  if (!made && made.error().Is(Code::kAlreadyExists)) {
    KEELSON_RETURN_IF_ERROR(netlink::DeleteLink(host, name));
    made = netlink::CreateIfb(host, name, port.mtu, LabelOf(request));
  }
  if (!made) return made.error();
  auto rest = [&]() -> Result<netlink::Link> {
    KEELSON_ASSIGN_OR_RETURN(netlink::Link ifb, netlink::GetLink(host, name));
    KEELSON_RETURN_IF_ERROR(netlink::SetTokenBucket(host, ifb.index, BucketFor(limit, port.mtu)));
    KEELSON_RETURN_IF_ERROR(netlink::RedirectReceived(host, port.index, ifb.index));
    return ifb;
  };
  Result<netlink::Link> ifb = rest();
  if (ifb) return std::move(*ifb);
  (void)netlink::DeleteLink(host, name);
  return ifb.error();
}

Outcome<AddResult> Add(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(BandwidthConfig config, ReadBandwidthConfig(request));
  if (!request.prev_result) return CniError{kInvalidConfig, "must be called as chained plugin", ""};
  AddResult result = *request.prev_result;
  if (config.ingress.rate == 0 && config.egress.rate == 0) return result;
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Link port, FindPort(host, request));
  if (config.ingress.rate > 0) {
    KEELSON_RETURN_IF_ERROR(netlink::SetTokenBucket(host, port.index, BucketFor(config.ingress, port.mtu)));
  }
  if (config.egress.rate > 0) {
    KEELSON_ASSIGN_OR_RETURN(netlink::Link ifb, LimitEgress(host, port, config.egress, request));
    result.interfaces.push_back({.name = ifb.name, .mac = ifb.mac.ToString(), .mtu = ifb.mtu});
  }
  return result;
}

// The port's own disciplines go with the port.
Outcome<> Del(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket child, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket own, netlink::Socket::Open());
  return RemoveLink(child, own, IfbName(request));
}

Outcome<> CheckBucket(netlink::Socket& host, const netlink::Link& link, const Limit& limit, int mtu) {
  KEELSON_ASSIGN_OR_RETURN(auto found, netlink::GetTokenBucket(host, link.index));
  if (!found) return CheckFailed("Failed to find qdisc on " + link.name);
  netlink::TokenBucket wanted = BucketFor(limit, mtu);
  if (found->rate != wanted.rate) return CheckFailed("Rate doesn't match on " + link.name);
  // The kernel stores a burst as a time, so it is rounded.
  double ratio = static_cast<double>(found->burst) / wanted.burst;
  if (ratio < 0.98 || ratio > 1.02) return CheckFailed("Burst doesn't match on " + link.name);
  return {};
}

Outcome<> Check(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(BandwidthConfig config, ReadBandwidthConfig(request));
  if (config.ingress.rate == 0 && config.egress.rate == 0) return {};
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Link port, FindPort(host, request));
  if (config.ingress.rate > 0) KEELSON_RETURN_IF_ERROR(CheckBucket(host, port, config.ingress, port.mtu));
  if (config.egress.rate == 0) return {};
  Result<netlink::Link> ifb = netlink::GetLink(host, IfbName(request));
  if (!ifb || !ifb->up) return CheckFailed("ifb device " + IfbName(request) + " is missing");
  KEELSON_RETURN_IF_ERROR(CheckBucket(host, *ifb, config.egress, port.mtu));
  KEELSON_ASSIGN_OR_RETURN(int target, netlink::GetRedirection(host, port.index));
  if (target != ifb->index) return CheckFailed(port.name + " is not redirected to " + ifb->name);
  return {};
}

// An ifb without a label belongs to an ADD that was interrupted or is running; runtimes do not run GC
// during an ADD.
Outcome<> Gc(const Request& request) {
  StaleLabels stale(request);
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(auto links, netlink::ListLinks(host));
  for (const netlink::Link& link : links) {
    if (link.kind != "ifb" || !link.name.starts_with("bwp")) continue;
    bool unfinished = link.alias.empty() && !link.up;
    if (!unfinished && !stale.Contains(link.alias)) continue;
    KEELSON_ASSIGN_OR_RETURN(bool deleted, netlink::DeleteLink(host, link.name));
    (void)deleted;
  }
  return {};
}

Outcome<> Status(const Request& request) {
  KEELSON_RETURN_IF_ERROR(ReadBandwidthConfig(request));
  return {};
}

}  // namespace

Plugin BandwidthPlugin() {
  return {
      .about = "CNI bandwidth plugin", .add = Add, .del = Del, .check = Check, .status = Status, .gc = Gc};
}

}  // namespace keelson::cni
