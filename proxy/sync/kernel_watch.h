// Threads that wait for the kernel to tell of changes by others, and pass them on.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "lib/base/error.h"
#include "lib/base/mutex.h"
#include "lib/nft/quiet.h"
#include "proxy/sync/proxier.h"

namespace keelson::proxy {

// Changes of nftables tables. Without notifications the proxier looks from time to time.
class TableWatch {
 public:
  // For the proxier: what it writes much of at once, the watch does not listen to.
  Result<std::unique_ptr<nft::Kernel>> OpenKernel();
  // From the first sync until `stop`.
  Result<> Run(std::stop_token stop, Proxier& proxier);

 private:
  std::shared_ptr<nft::Monitor> monitor() EXCLUDES(mutex_);
  void Listen(std::shared_ptr<nft::Monitor> monitor, Proxier& proxier) EXCLUDES(mutex_);

  Mutex mutex_;
  std::shared_ptr<nft::Monitor> monitor_ GUARDED_BY(mutex_);
  Proxier* proxier_ GUARDED_BY(mutex_) = nullptr;  // set with the first monitor
};

// Addresses that come and go, and filters of devices that somebody takes away, until `stop`. On return or
// failure `changed` has been called once more.
Result<> WatchAddresses(std::stop_token stop, const std::function<void()>& changed);
// The same of IPsec policies.
Result<> WatchPolicies(std::stop_token stop, const std::function<void()>& changed);

}  // namespace keelson::proxy
