#include "lib/netlink/wireguard.h"

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/wireguard.h>

#include <algorithm>
#include <cstring>

#include "lib/netlink/generic_internal.h"
#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

constexpr size_t kPeersPerMessage = 16;  // libnl messages are one page

std::string Bytes(nlattr* attribute) {
  return {static_cast<char*>(nla_data(attribute)), static_cast<size_t>(nla_len(attribute))};
}

template <typename Each>
void ForEach(nlattr* list, Each each) {
  if (!list) return;
  int left = nla_len(list);
  for (auto* at = static_cast<nlattr*>(nla_data(list)); nla_ok(at, left); at = nla_next(at, &left)) each(at);
}

nlattr* Find(nlattr* nest, int type) {
  return nla_find(static_cast<nlattr*>(nla_data(nest)), nla_len(nest), type);
}

WireguardPeer ParsePeer(nlattr* nest) {
  WireguardPeer out;
  if (nlattr* key = Find(nest, WGPEER_A_PUBLIC_KEY)) out.public_key = Bytes(key);
  if (nlattr* endpoint = Find(nest, WGPEER_A_ENDPOINT)) {
    auto* address = static_cast<sockaddr*>(nla_data(endpoint));
    if (address->sa_family == AF_INET && nla_len(endpoint) >= static_cast<int>(sizeof(sockaddr_in))) {
      auto* v4 = reinterpret_cast<sockaddr_in*>(address);
      out.endpoint = IpAddress::FromBytes({reinterpret_cast<char*>(&v4->sin_addr), 4});
      out.port = ntohs(v4->sin_port);
    } else if (address->sa_family == AF_INET6 &&
               nla_len(endpoint) >= static_cast<int>(sizeof(sockaddr_in6))) {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(address);
      out.endpoint = IpAddress::FromBytes({reinterpret_cast<char*>(&v6->sin6_addr), 16});
      out.port = ntohs(v6->sin6_port);
    }
  }
  ForEach(Find(nest, WGPEER_A_ALLOWEDIPS), [&](nlattr* entry) {
    nlattr* address = Find(entry, WGALLOWEDIP_A_IPADDR);
    nlattr* length = Find(entry, WGALLOWEDIP_A_CIDR_MASK);
    if (!address || !length || (nla_len(address) != 4 && nla_len(address) != 16)) return;
    out.allowed.emplace_back(IpAddress::FromBytes(Bytes(address)), nla_get_u8(length));
  });
  return out;
}

std::string SocketAddress(const IpAddress& ip, uint16_t port) {
  if (ip.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, ip.bytes().data(), 4);
    return {reinterpret_cast<char*>(&v4), sizeof v4};
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&v6.sin6_addr, ip.bytes().data(), 16);
  return {reinterpret_cast<char*>(&v6), sizeof v6};
}

void PutPeer(Request& request, const WireguardPeer& peer) {
  request.Nest(NLA_F_NESTED, [&] {
    request.PutBytes(WGPEER_A_PUBLIC_KEY, peer.public_key);
    request.PutU32(WGPEER_A_FLAGS, WGPEER_F_REPLACE_ALLOWEDIPS);
    request.PutBytes(WGPEER_A_ENDPOINT, SocketAddress(peer.endpoint, peer.port));
    request.Nest(WGPEER_A_ALLOWEDIPS | NLA_F_NESTED, [&] {
      for (const IpPrefix& prefix : peer.allowed) {
        request.Nest(NLA_F_NESTED, [&] {
          uint16_t family = prefix.is_v4() ? AF_INET : AF_INET6;
          request.PutBytes(WGALLOWEDIP_A_FAMILY, {reinterpret_cast<char*>(&family), sizeof family});
          request.PutBytes(WGALLOWEDIP_A_IPADDR, prefix.address().bytes());
          request.PutU8(WGALLOWEDIP_A_CIDR_MASK, static_cast<uint8_t>(prefix.length()));
        });
      }
    });
  });
}

}  // namespace

Result<> CreateWireguard(Socket& route, std::string_view name, int mtu) {
  ifinfomsg header{};
  header.ifi_flags = header.ifi_change = IFF_UP;
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, header, "create wireguard " + std::string(name));
  request.PutString(IFLA_IFNAME, name);
  if (mtu > 0) request.PutU32(IFLA_MTU, static_cast<uint32_t>(mtu));
  request.Nest(IFLA_LINKINFO, [&] { request.PutString(IFLA_INFO_KIND, "wireguard"); });
  Result<> made = request.Run(route);
  if (!made && made.error().errnum() == EOPNOTSUPP) {
    return Error(Code::kUnimplemented, "this kernel has no WireGuard (" + made.error().message() + ")",
                 EOPNOTSUPP);
  }
  return made;
}

Result<WireguardDevice> GetWireguard(Socket& generic, std::string_view name) {
  KEELSON_ASSIGN_OR_RETURN(int family, GenericFamily(generic, WG_GENL_NAME));
  genlmsghdr header{};
  header.cmd = WG_CMD_GET_DEVICE;
  header.version = WG_GENL_VERSION;
  Request request(family, NLM_F_DUMP, header, "read wireguard device " + std::string(name));
  request.PutString(WGDEVICE_A_IFNAME, name);
  WireguardDevice out;
  KEELSON_RETURN_IF_ERROR(request.Run(generic, [&](nlmsghdr* message) {
    if (nlattr* key = nlmsg_find_attr(message, sizeof header, WGDEVICE_A_PUBLIC_KEY)) {
      out.public_key = Bytes(key);
    }
    if (nlattr* port = nlmsg_find_attr(message, sizeof header, WGDEVICE_A_LISTEN_PORT)) {
      out.port = nla_get_u16(port);
    }
    ForEach(nlmsg_find_attr(message, sizeof header, WGDEVICE_A_PEERS), [&](nlattr* nest) {
      WireguardPeer peer = ParsePeer(nest);
      // A peer with many prefixes continues in the next message.
      if (!out.peers.empty() && out.peers.back().public_key == peer.public_key) {
        auto& allowed = out.peers.back().allowed;
        allowed.insert(allowed.end(), peer.allowed.begin(), peer.allowed.end());
      } else {
        out.peers.push_back(std::move(peer));
      }
    });
  }));
  for (WireguardPeer& peer : out.peers) std::sort(peer.allowed.begin(), peer.allowed.end());
  return out;
}

Result<> ChangeWireguard(Socket& generic, std::string_view name, const WireguardChange& change) {
  KEELSON_ASSIGN_OR_RETURN(int family, GenericFamily(generic, WG_GENL_NAME));
  genlmsghdr header{};
  header.cmd = WG_CMD_SET_DEVICE;
  header.version = WG_GENL_VERSION;
  const size_t total = change.removed.size() + change.set.size();
  size_t done = 0;
  do {
    Request request(family, 0, header, "change wireguard device " + std::string(name));
    request.PutString(WGDEVICE_A_IFNAME, name);
    if (done == 0 && change.private_key) request.PutBytes(WGDEVICE_A_PRIVATE_KEY, *change.private_key);
    if (done == 0 && change.port) {
      uint16_t port = *change.port;
      request.PutBytes(WGDEVICE_A_LISTEN_PORT, {reinterpret_cast<char*>(&port), sizeof port});
    }
    size_t end = std::min(done + kPeersPerMessage, total);
    if (done < end) {
      request.Nest(WGDEVICE_A_PEERS | NLA_F_NESTED, [&] {
        for (; done < end; ++done) {
          if (done >= change.removed.size()) {
            PutPeer(request, change.set[done - change.removed.size()]);
            continue;
          }
          request.Nest(NLA_F_NESTED, [&] {
            request.PutBytes(WGPEER_A_PUBLIC_KEY, change.removed[done]);
            request.PutU32(WGPEER_A_FLAGS, WGPEER_F_REMOVE_ME);
          });
        }
      });
    }
    KEELSON_RETURN_IF_ERROR(request.Run(generic));
  } while (done < total);
  return {};
}

}  // namespace keelson::netlink
