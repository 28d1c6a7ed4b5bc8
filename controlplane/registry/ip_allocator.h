// Allocates cluster IPs of Services from the cluster's ServiceCIDRs.
//
// Creating the IPAddress object (networking.k8s.io/v1) takes an address. Only one server can create it, so
// no two Services get one address, whatever else fails. The repair (service_repair.h) finds addresses whose
// Service was never stored.
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

  // Allocates a free address from the ranges that are ready. kInternal, in upstream's words, when they are
  // full.
  Result<std::string> Allocate(std::string_view family, const ServiceRef& owner, bool dry_run,
                               const storage::Limits& limits);
  // Allocates this very address. kInvalid, with the reason in upstream's words, if that is not possible.
  Result<> Claim(std::string_view ip, const ServiceRef& owner, bool dry_run, const storage::Limits& limits);
  // Releases the address if `owner` has it. The repair handles failures.
  void Release(std::string_view ip, const ServiceRef& owner);

  // The ranges of all ServiceCIDRs, the default one's first; with `ready`, only those open for allocation.
  std::vector<IpPrefix> Ranges(bool ready) const;
  static bool InRange(const IpPrefix& range, const IpAddress& ip);

 private:
  Result<> Refresh(const storage::Limits& limits) const;
  Result<> Fits(const IpAddress& ip, bool dry_run) const;
  // False: the address is taken.
  Result<bool> Create(const IpAddress& ip, const ServiceRef& owner, const storage::Limits& limits);
  Result<std::string> AllocateFrom(const IpPrefix& range, const ServiceRef& owner, bool dry_run,
                                   const storage::Limits& limits);

  storage::Store& store_;
  Clock& clock_;
};

// Sets the metrics about free addresses in each range.
void TellAddresses(storage::Store& store, Clock& clock);

// The label on our IPAddress objects that names their controller.
inline constexpr char kManagedByLabel[] = "ipaddress.kubernetes.io/managed-by";
inline constexpr char kIpManager[] = "ipallocator.k8s.io";

// The size of the lower part of a range, reserved for static addresses or ports; upstream's formula.
int64_t StaticPart(int64_t size, int64_t step, int64_t least, int64_t most);
// A random number in [first, end).
int64_t RandomBetween(int64_t first, int64_t end);

}  // namespace keelson::registry
