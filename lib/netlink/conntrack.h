// Connection tracking entries (ctnetlink): listing and deleting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

// A tracked connection. What the first packet was sent to is `destination`; who really answers, after
// translation, is `replier`.
struct Flow {
  uint8_t protocol = 0;
  IpAddress source, destination, replier;
  uint16_t source_port = 0, destination_port = 0, replier_port = 0;
  std::string tuple;  // the original direction as the kernel wrote it: names the entry
};

// `socket` comes from Socket::OpenNetfilter. Of one family and protocol (IPPROTO_UDP, ...).
Result<std::vector<Flow>> ListFlows(Socket& socket, bool v4, uint8_t protocol);
// False when it had gone already.
Result<bool> DeleteFlow(Socket& socket, const Flow& flow);

}  // namespace keelson::netlink
