// Cluster IPs and node ports of Services.
//
// A cluster IP is taken by creating its IPAddress object (networking.k8s.io/v1), which only one server can
// do: no two Services get one address, whatever else fails. Node ports are kept in memory, rebuilt from the
// Services at start.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"
#include "lib/base/ip.h"
#include "lib/base/mutex.h"

namespace keelson::registry {

class ServiceAllocator {
 public:
  ServiceAllocator(storage::Store& store, const Config& config, Clock& clock);

  // Parses the ranges, makes the ServiceCIDR "kubernetes", and mends what a crash between two writes may
  // have left: addresses without a Service, Services without their address.
  Result<> Start(const storage::Limits& limits);

  static constexpr std::string_view kIpv4 = "IPv4", kIpv6 = "IPv6";
  // The cluster's families, the default one first.
  const std::vector<std::string>& families() const { return families_; }
  bool dual_stack() const { return families_.size() == 2; }

  struct Owner {
    std::string ns, name;
  };
  // Any free address; kInternal when the range is full.
  Result<std::string> AllocateIp(std::string_view family, const Owner& owner, bool dry_run,
                                 const storage::Limits& limits);
  // That very address; the error's message says why not, in upstream's words.
  Result<> ClaimIp(std::string_view ip, const Owner& owner, bool dry_run, const storage::Limits& limits);
  void ReleaseIp(std::string_view ip, const Owner& owner);

  Result<int> AllocatePort(bool dry_run);
  Result<> ClaimPort(int port, bool dry_run);
  void ReleasePort(int port);

 private:
  const IpPrefix* RangeOf(const IpAddress& ip) const;
  Result<bool> Create(const IpAddress& ip, const Owner& owner,
                      const storage::Limits& limits);  // false: taken
  Result<> EnsureServiceCidr(const storage::Limits& limits);
  Result<> Repair(const storage::Limits& limits);

  storage::Store& store_;
  const Config& config_;
  Clock& clock_;
  std::vector<IpPrefix> ranges_;
  std::vector<std::string> families_;
  Mutex mutex_;
  std::set<int> ports_ GUARDED_BY(mutex_);
};

}  // namespace keelson::registry
