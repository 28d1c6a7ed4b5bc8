// Sockets that see and send the frames by which neighbours find each other on one link (packet(7)).
#pragma once

#include <string>
#include <string_view>

#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/netlink/link.h"

namespace keelson::proxy {

// ARP, or the solicitations and advertisements of IPv6. In the network namespace that it was opened in.
// CAP_NET_RAW.
class LinkSocket {
 public:
  static Result<LinkSocket> Open(const netlink::Link& link, bool v4);

  int fd() const { return fd_.get(); }
  const netlink::MacAddress& mac() const { return mac_; }
  // Takes in what is sent to this IPv6 multicast address, and lets switches know (MLD).
  Result<> Join(const IpAddress& group);
  // The next frame; empty when there is none now.
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
