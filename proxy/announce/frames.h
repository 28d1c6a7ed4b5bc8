// Ethernet frames of ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861). Pure: bytes in, bytes out.
// Malformed frames are ignored.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/ip.h"
#include "lib/netlink/link.h"

namespace keelson::proxy {

// A neighbour asks for the link-layer address of `target`.
struct NeighborQuestion {
  IpAddress target;
  IpAddress asker;  // unspecified: duplicate address detection
  netlink::MacAddress asker_mac;
};

// Parses a frame of a packet socket: an ARP request, or a neighbour solicitation with hop limit 255 and a
// good checksum. nullopt: it is none.
std::optional<NeighborQuestion> ParseQuestion(std::string_view frame);

// A neighbour claims an address: as the sender of any ARP frame, or by a neighbour advertisement.
struct NeighborClaim {
  IpAddress address;
  netlink::MacAddress mac;
};
// nullopt: the frame claims none.
std::optional<NeighborClaim> ParseClaim(std::string_view frame);

// The frame that answers `question`: `mac` has the address.
std::string AnswerTo(const NeighborQuestion& question, const netlink::MacAddress& mac);

// An unsolicited frame to all neighbours: `mac` has the address now (gratuitous ARP, or an overriding
// advertisement). `request`: with ARP as a request instead of a reply, for neighbours that only learn from
// these.
std::string Announcement(const IpAddress& address, const netlink::MacAddress& mac, bool request);

// The multicast address, and its MAC, that solicitations of an IPv6 address are sent to.
IpAddress SolicitedNodeAddress(const IpAddress& address);
netlink::MacAddress MulticastMac(const IpAddress& address);

}  // namespace keelson::proxy
