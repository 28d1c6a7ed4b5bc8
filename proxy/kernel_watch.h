// Threads that wait for the kernel to tell of changes by others, and pass them on.
#pragma once

#include <functional>
#include <stop_token>

#include "lib/base/error.h"
#include "proxy/proxier.h"

namespace keelson::proxy {

// Changes of nftables tables, from the first sync until `stop`: the kernel would tell of each of its
// elements. Without notifications the proxier looks from time to time.
Result<> WatchTables(std::stop_token stop, Proxier& proxier);

// Addresses that come and go, until `stop`. On return or failure `changed` has been called once more.
Result<> WatchAddresses(std::stop_token stop, const std::function<void()>& changed);

}  // namespace keelson::proxy
