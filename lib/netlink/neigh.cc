#include "lib/netlink/neigh.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/netlink/requests_internal.h"

namespace keelson::netlink {
namespace {

ndmsg Header(int link_index, const IpAddress& address, uint16_t state) {
  ndmsg header{};
  header.ndm_family = address.is_v4() ? AF_INET : AF_INET6;
  header.ndm_ifindex = link_index;
  header.ndm_state = state;
  return header;
}

}  // namespace

std::unique_ptr<Request> NeighborRequest(const Neighbor& n) {
  auto request =
      std::make_unique<Request>(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE,
                                Header(n.link_index, n.address, n.permanent ? NUD_PERMANENT : NUD_REACHABLE),
                                "set neighbour " + n.address.ToString());
  request->PutBytes(NDA_DST, n.address.bytes());
  request->PutBytes(NDA_LLADDR, std::string(n.mac.bytes().begin(), n.mac.bytes().end()));
  return request;
}

std::unique_ptr<Request> DeleteNeighborRequest(int link_index, const IpAddress& address) {
  auto request = std::make_unique<Request>(RTM_DELNEIGH, 0, Header(link_index, address, 0),
                                           "delete neighbour " + address.ToString());
  request->PutBytes(NDA_DST, address.bytes());
  return request;
}

Result<> ReplaceNeighbor(Socket& socket, const Neighbor& n) { return NeighborRequest(n)->Run(socket); }

Result<bool> DeleteNeighbor(Socket& socket, int link_index, const IpAddress& address) {
  return DeleteNeighborRequest(link_index, address)->RunIfThere(socket);
}

Result<std::vector<Neighbor>> ListNeighbors(Socket& socket, int link_index) {
  std::vector<Neighbor> out;
  Request request(RTM_GETNEIGH, NLM_F_DUMP, ndmsg{}, "list neighbours");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    auto* info = static_cast<ndmsg*>(nlmsg_data(header));
    nlattr* attributes[NDA_MAX + 1];
    if (info->ndm_ifindex != link_index ||
        nlmsg_parse(header, sizeof *info, attributes, NDA_MAX, nullptr) < 0) {
      return;
    }
    nlattr* address = attributes[NDA_DST];
    nlattr* mac = attributes[NDA_LLADDR];
    if (!address || (nla_len(address) != 4 && nla_len(address) != 16) || !mac || nla_len(mac) != 6) return;
    std::array<uint8_t, 6> bytes;
    std::memcpy(bytes.data(), nla_data(mac), bytes.size());
    out.push_back({.link_index = link_index,
                   .address = IpAddress::FromBytes(
                       {static_cast<char*>(nla_data(address)), static_cast<size_t>(nla_len(address))}),
                   .mac = MacAddress(bytes),
                   .permanent = (info->ndm_state & NUD_PERMANENT) != 0});
  }));
  return out;
}

}  // namespace keelson::netlink
