// SCTP without kernel support for its sockets: kernels translate SCTP packets anyway. The first two packets
// of an association, INIT and INIT ACK, use raw sockets; the state cookie carries the greeting. Checksums are
// verified, so translation must update them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/linux/netns.h"

namespace keelson::netns {

// Opens raw sockets of both families in the calling thread's namespace.
Result<std::vector<UniqueFd>> OpenRawSctp();
// Reads one packet, and answers an INIT to `port` with "NAME CLIENT-IP".
void AnswerRawSctp(int fd, const std::string& name, uint16_t port);

// Returns the greeting. Errors carry errno: ECONNREFUSED, or ETIMEDOUT after the limit.
Result<std::string> AskRawSctp(const linux::NetNs& from, const std::optional<IpAddress>& source,
                               const IpAddress& to, uint16_t port, std::chrono::milliseconds limit);

}  // namespace keelson::netns
