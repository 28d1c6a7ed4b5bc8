// Cluster IPs of Services, out of the cluster's ServiceCIDRs.
//
// An address is taken by creating its IPAddress object (networking.k8s.io/v1), which only one server can do:
// no two Services get one address, whatever else fails. An address whose Service never came is found by the
// repair (service_repair.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"
#include "lib/base/ip.h"

namespace keelson::registry {

// The Service that holds an address.
struct ServiceRef {
  std::string ns, name;
};

class IpAllocator {  // thread safe
 public:
  IpAllocator(storage::Store& store, Clock& clock) : store_(store), clock_(clock) {}

  // A free address out of the ranges that are ready. kInternal, in upstream's words, when they are full.
  Result<std::string> Allocate(std::string_view family, const ServiceRef& owner, bool dry_run,
                               const storage::Limits& limits);
  // That very address; a kInvalid error's message says why not, in upstream's words.
  Result<> Claim(std::string_view ip, const ServiceRef& owner, bool dry_run, const storage::Limits& limits);
  // Lets go of it, if it is `owner`'s. What fails is left to the repair.
  void Release(std::string_view ip, const ServiceRef& owner);

  // All ranges of ServiceCIDRs, the default one's first; only those that may be allocated from if `ready`.
  std::vector<IpPrefix> Ranges(bool ready) const;
  static bool InRange(const IpPrefix& range, const IpAddress& ip);

 private:
  Result<> Refresh(const storage::Limits& limits) const;
  Result<> Fits(const IpAddress& ip, bool dry_run) const;
  // false: taken.
  Result<bool> Create(const IpAddress& ip, const ServiceRef& owner, const storage::Limits& limits);
  Result<std::string> AllocateFrom(const IpPrefix& range, const ServiceRef& owner, bool dry_run,
                                   const storage::Limits& limits);

  storage::Store& store_;
  Clock& clock_;
};

// How many addresses each range has left, for /metrics.
void TellAddresses(storage::Store& store, Clock& clock);

// The controller that IPAddress objects of ours carry in their labels.
inline constexpr char kManagedByLabel[] = "ipaddress.kubernetes.io/managed-by";
inline constexpr char kIpManager[] = "ipallocator.k8s.io";

// The lower part of a range is left to those who name their address or port; upstream's sizes.
int64_t StaticPart(int64_t size, int64_t step, int64_t least, int64_t most);
// From [first, end), by chance.
int64_t RandomBetween(int64_t first, int64_t end);

}  // namespace keelson::registry
