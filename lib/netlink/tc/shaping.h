// Traffic shaping (rtnetlink(7), RTM_*QDISC and RTM_*TFILTER; tc(8)).
//
// A device's root queueing discipline shapes what it sends. What it receives cannot be queued there: it is
// redirected through an ifb device, whose own root discipline shapes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

// tc-tbf(8): sends `rate` on average and up to `burst` at once; drops packets that would wait behind more
// than `limit` bytes.
struct TokenBucket {
  uint64_t rate = 0;   // bytes a second
  uint32_t burst = 0;  // bytes
  uint32_t limit = 0;  // bytes
};

// Sets the root discipline, replacing the current one.
Result<> SetTokenBucket(Socket& socket, int link_index, const TokenBucket& bucket);
// nullopt when the root discipline is of another kind. `burst` is rounded, because the kernel stores it as
// a time.
Result<std::optional<TokenBucket>> GetTokenBucket(Socket& socket, int link_index);

// kAlreadyExists when the name is taken. The device is down, and has no alias, until it is complete.
Result<> CreateIfb(Socket& socket, std::string_view name, int mtu, std::string_view alias);
// Redirects all packets that `link_index` receives through `ifb_index`, after which they continue on their
// way. Replaces an older redirection.
Result<> RedirectReceived(Socket& socket, int link_index, int ifb_index);
// The index of the ifb device; 0: there is no redirection.
Result<int> GetRedirection(Socket& socket, int link_index);

}  // namespace keelson::netlink
