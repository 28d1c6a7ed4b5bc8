// SCTP without the kernel's: kernels without its sockets translate its packets all the same. The first two
// packets of an association, INIT and INIT ACK, go over raw sockets; the greeting travels in the state
// cookie. Checksums are written and held to be right, so translation has to get them right too.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/linux/netns.h"

namespace keelson::netns {

// Raw sockets of both families in the calling thread's namespace.
Result<std::vector<UniqueFd>> OpenRawSctp();
// Reads one packet, and answers it if it is an INIT to `port`: with "NAME CLIENT-IP".
void AnswerRawSctp(int fd, const std::string& name, uint16_t port);

// The greeting. Errors carry errno: ECONNREFUSED, ETIMEDOUT after the limit.
Result<std::string> AskRawSctp(const linux::NetNs& from, const std::optional<IpAddress>& source,
                               const IpAddress& to, uint16_t port, std::chrono::milliseconds limit);

}  // namespace keelson::netns
