// Network policies by domain name: before a client gets an answer, its addresses are elements of the sets that kube-cni's
// rules look into (lib/dataplane/domain_sets.h), for as long as the answer holds. So the first packet that a pod sends
// finds them there.
//
// The kernel has all the state: a proxy or an agent that ends and begins again changes nothing, and addresses go by
// themselves. When the kernel does not take an address, the client gets its answer all the same, and the rules drop its
// packets: policies decide about packets and not about names.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"
#include "lib/nft/kernel.h"
#include "proxy/dns/answer_hold.h"
#include "proxy/dns/policy_names.h"

namespace keelson::proxy::dns {

class AddressWriter : public AnswerHold {
 public:
  // A client may open connections for this long after the TTL of an answer: there are caches that do not know the TTL
  // (the JVM's holds names for 30 s), and first packets that are lost.
  static constexpr std::chrono::seconds kGrace{30};
  static constexpr std::chrono::seconds kLongest{7 * 24 * 3600};  // RFC 8767, 4
  // Addresses of one set. Further ones stay closed until others have expired.
  static constexpr size_t kMostOfSet = 8192;
  static constexpr size_t kMostHeld = 4096;  // answers that wait; further ones do not

  // Opens its sockets in the calling thread's network namespace.
  static Result<std::unique_ptr<AddressWriter>> Open(Clock& clock);
  // Each of the two has a kernel of its own, of the same network namespace.
  AddressWriter(std::unique_ptr<nft::Kernel> names, std::unique_ptr<nft::Kernel> kernel, Clock& clock)
      : names_(std::move(names), clock), kernel_(std::move(kernel)), clock_(clock) {}

  bool Holds(std::string_view name, bool v4) override { return names_.Has(name, v4); }
  void Hold(std::string answer, std::function<void(std::string_view)> send) override;
  // Writes and sends until `stop`; then answers no longer wait. Needs a thread of its own.
  Result<> Run(std::stop_token stop);

 private:
  struct Held {
    std::string answer;
    std::function<void(std::string_view)> send;
  };
  // When an element's lifetime ends: the kernel's clock starts some time between two looks at ours.
  struct Lifetime {
    SteadyTime least, most;
  };
  using Elements = std::unordered_map<std::string, Lifetime>;                         // by key
  using Wanted = std::map<std::string, std::map<std::string, std::chrono::seconds>>;  // set, key, TTL

  Wanted WantedBy(const std::vector<Held>& held);
  void Write(const Wanted& wanted);
  // Forgets what another program may have changed, and reads the sets of `wanted` that are not known.
  Result<> Read(const Wanted& wanted);
  nft::Transaction Plan(const Wanted& wanted, SteadyTime now);

  PolicyNames names_;
  const std::unique_ptr<nft::Kernel> kernel_;
  Clock& clock_;
  // Of Run()'s thread: what the kernel holds, as of `generation_`.
  std::unordered_map<std::string, Elements> known_;
  uint32_t generation_ = 0;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Held> held_ KEELSON_GUARDED_BY(mutex_);
  bool stopped_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::proxy::dns
