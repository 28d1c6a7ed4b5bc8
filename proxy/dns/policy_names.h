// Which domain names network policies have: the sets in the kernel that kube-cni has made for them
// (lib/dataplane/domain_sets.h).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/nft/kernel.h"

namespace keelson::proxy::dns {

// Thread safe. Asks the kernel for its generation, at most every `kFresh`, and lists the sets when it has changed. Both are
// reads that no transaction delays. There is no monitor: while one listens, each transaction of any program is slower.
class PolicyNames {
 public:
  static constexpr std::chrono::milliseconds kFresh{10};

  PolicyNames(std::unique_ptr<nft::Kernel> kernel, Clock& clock)
      : kernel_(std::move(kernel)), clock_(clock) {}

  // The sets that exist and that addresses of the name belong to. `name`: wire form, lower case.
  std::vector<std::string> SetsOf(std::string_view name, bool v4);
  bool Has(std::string_view name, bool v4) { return !SetsOf(name, v4).empty(); }

 private:
  void Refresh() KEELSON_REQUIRES(mutex_);

  const std::unique_ptr<nft::Kernel> kernel_;
  Clock& clock_;
  Mutex mutex_;
  SteadyTime fresh_until_ KEELSON_GUARDED_BY(mutex_){};
  uint32_t generation_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::unordered_set<std::string> sets_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::proxy::dns
