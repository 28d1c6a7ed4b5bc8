// Sockets that receive and send frames of neighbour discovery on one link (packet(7)). Not thread safe.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/netlink/link.h"

namespace keelson::proxy {

// Frames of ARP, or of IPv6 solicitations and advertisements.
class LinkSocket {
 public:
  // In the calling thread's network namespace. Needs CAP_NET_RAW.
  static Result<LinkSocket> Open(const netlink::Link& link, bool v4);

  int fd() const { return fd_.get(); }
  const netlink::MacAddress& mac() const { return mac_; }
  // Receives frames to this IPv6 multicast address, and tells switches so (MLD).
  Result<> Join(const IpAddress& group);
  // The next frame; empty: there is none now.
  Result<std::string> Receive();
  Result<> Send(std::string_view frame);

 private:
  LinkSocket(UniqueFd fd, int link_index, netlink::MacAddress mac)
      : fd_(std::move(fd)), link_index_(link_index), mac_(mac) {}
  UniqueFd fd_, member_;  // the second one is there for its memberships
  int link_index_;
  netlink::MacAddress mac_;
};

}  // namespace keelson::proxy
