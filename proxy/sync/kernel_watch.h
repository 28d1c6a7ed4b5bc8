// Threads that receive the kernel's notifications about changes by other programs.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "lib/base/error.h"
#include "lib/base/mutex.h"
#include "lib/nft/quiet.h"
#include "proxy/sync/proxier.h"

namespace keelson::proxy {

// Watches nftables tables. Where the kernel sends no notifications, the proxier looks every sync period.
class TableWatch {
 public:
  // A kernel for the proxier. While it writes large transactions the watch does not listen.
  Result<std::unique_ptr<nft::Kernel>> OpenKernel();
  // Waits for the first sync, then tells `proxier` of changes until `stop`.
  Result<> Run(std::stop_token stop, Proxier& proxier);

 private:
  std::shared_ptr<nft::Monitor> monitor() KEELSON_EXCLUDES(mutex_);
  void Listen(std::shared_ptr<nft::Monitor> monitor, Proxier& proxier) KEELSON_EXCLUDES(mutex_);

  Mutex mutex_;
  std::shared_ptr<nft::Monitor> monitor_ KEELSON_GUARDED_BY(mutex_);
  Proxier* proxier_ KEELSON_GUARDED_BY(mutex_) = nullptr;  // set with the first monitor
};

// Calls `changed` when this machine's addresses change, or filters of its devices are removed, until `stop`;
// and once more before it returns or fails.
Result<> WatchAddresses(std::stop_token stop, const std::function<void()>& changed);
// The same for IPsec policies.
Result<> WatchPolicies(std::stop_token stop, const std::function<void()>& changed);

}  // namespace keelson::proxy
