// Internal to lib/netlink: requests that can be sent alone or in a batch.
#pragma once

#include <memory>
#include <string_view>

#include "lib/netlink/fdb.h"
#include "lib/netlink/neigh.h"
#include "lib/netlink/request_internal.h"
#include "lib/netlink/route.h"

namespace keelson::netlink {

std::unique_ptr<Request> RouteRequest(int type, int flags, const Route& route, std::string_view verb);
std::unique_ptr<Request> NeighborRequest(const Neighbor& neighbor);
std::unique_ptr<Request> DeleteNeighborRequest(int link_index, const IpAddress& address);
std::unique_ptr<Request> ForwardingRequest(const Forwarding& entry);
std::unique_ptr<Request> DeleteForwardingRequest(const Forwarding& entry);

}  // namespace keelson::netlink
