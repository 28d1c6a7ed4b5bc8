// Ethernet frames by which neighbours find an address: ARP (RFC 826) and IPv6 neighbour discovery
// (RFC 4861). Pure: bytes in, bytes out. Whatever is not a well-formed question is none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/ip.h"
#include "lib/netlink/link.h"

namespace keelson::proxy {

// Somebody on the link asks who has `target`.
struct NeighborQuestion {
  IpAddress target;
  IpAddress asker;  // unspecified: it looks whether the address is free
  netlink::MacAddress asker_mac;
};

// A frame as it came from a packet socket: an ARP request, or a neighbour solicitation with hop limit 255 and
// a good checksum.
std::optional<NeighborQuestion> ParseQuestion(std::string_view frame);

// Somebody says that it has an address: whoever sends ARP says so of its own, and advertisements do.
struct NeighborClaim {
  IpAddress address;
  netlink::MacAddress mac;
};
std::optional<NeighborClaim> ParseClaim(std::string_view frame);

// The answer: `mac` has the address.
std::string AnswerTo(const NeighborQuestion& question, const netlink::MacAddress& mac);

// Tells all on the link, unasked, that `mac` has the address now. An ARP reply goes to everybody, and so does
// an advertisement that overrides. `request`: of ARP the other form, as some listen to that one only.
std::string Announcement(const IpAddress& address, const netlink::MacAddress& mac, bool request);

// The multicast address, and its MAC, that solicitations of an IPv6 address are sent to.
IpAddress SolicitedNodeAddress(const IpAddress& address);
netlink::MacAddress MulticastMac(const IpAddress& address);

}  // namespace keelson::proxy
