// Traffic shaping (rtnetlink(7), RTM_*QDISC and RTM_*TFILTER; tc(8)).
//
// What a device sends passes its root queueing discipline. What it receives cannot be queued there: it is
// sent through an ifb device first, whose own root discipline shapes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

// tc-tbf(8): on average `rate`, at once as much as `burst`; what would wait longer than `limit` bytes of
// others take is dropped.
struct TokenBucket {
  uint64_t rate = 0;   // bytes a second
  uint32_t burst = 0;  // bytes
  uint32_t limit = 0;  // bytes
};

// As the root discipline, in place of what is there.
Result<> SetTokenBucket(Socket& socket, int link_index, const TokenBucket& bucket);
// nullopt when the root discipline is another one. `burst` comes back rounded, the kernel keeps it as time.
Result<std::optional<TokenBucket>> GetTokenBucket(Socket& socket, int link_index);

// kAlreadyExists when the name is taken. It is down, and without its alias, until it is complete.
Result<> CreateIfb(Socket& socket, std::string_view name, int mtu, std::string_view alias);
// All that `link_index` receives goes through `ifb_index`, and then on its way. Replaces an older
// redirection.
Result<> RedirectReceived(Socket& socket, int link_index, int ifb_index);
// Where it goes; 0: on its usual way.
Result<int> GetRedirection(Socket& socket, int link_index);

}  // namespace keelson::netlink
