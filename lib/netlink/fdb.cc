#include "lib/netlink/fdb.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/netlink/requests_internal.h"

namespace keelson::netlink {
namespace {

std::unique_ptr<Request> Make(int type, int flags, const Forwarding& entry, std::string_view verb) {
  ndmsg header{};
  header.ndm_family = AF_BRIDGE;
  header.ndm_ifindex = entry.link_index;
  header.ndm_state = NUD_PERMANENT;
  header.ndm_flags = NTF_SELF;
  auto request = std::make_unique<Request>(type, flags, header,
                                           std::string(verb) + " forwarding entry " + entry.mac.ToString());
  request->PutBytes(NDA_LLADDR, std::string(entry.mac.bytes().begin(), entry.mac.bytes().end()));
  request->PutBytes(NDA_DST, entry.destination.bytes());
  return request;
}

}  // namespace

std::unique_ptr<Request> ForwardingRequest(const Forwarding& entry) {
  return Make(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, entry, "set");
}

std::unique_ptr<Request> DeleteForwardingRequest(const Forwarding& entry) {
  return Make(RTM_DELNEIGH, 0, entry, "delete");
}

Result<> ReplaceForwarding(Socket& socket, const Forwarding& entry) {
  return ForwardingRequest(entry)->Run(socket);
}

Result<bool> DeleteForwarding(Socket& socket, const Forwarding& entry) {
  return DeleteForwardingRequest(entry)->RunIfThere(socket);
}

Result<std::vector<Forwarding>> ListForwarding(Socket& socket, int link_index) {
  std::vector<Forwarding> out;
  ndmsg all{};
  all.ndm_family = AF_BRIDGE;
  Request request(RTM_GETNEIGH, NLM_F_DUMP, all, "list forwarding entries");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    auto* info = static_cast<ndmsg*>(nlmsg_data(header));
    nlattr* attributes[NDA_MAX + 1];
    if (info->ndm_ifindex != link_index ||
        nlmsg_parse(header, sizeof *info, attributes, NDA_MAX, nullptr) < 0) {
      return;
    }
    nlattr* mac = attributes[NDA_LLADDR];
    nlattr* host = attributes[NDA_DST];
    if (!mac || nla_len(mac) != 6 || !host || (nla_len(host) != 4 && nla_len(host) != 16)) return;
    std::array<uint8_t, 6> bytes;
    std::memcpy(bytes.data(), nla_data(mac), bytes.size());
    out.push_back(
        {link_index, MacAddress(bytes),
         IpAddress::FromBytes({static_cast<char*>(nla_data(host)), static_cast<size_t>(nla_len(host))})});
  }));
  return out;
}

}  // namespace keelson::netlink
