// Allocates addresses and node ports for Services.
#pragma once

#include <string>
#include <vector>

#include "controlplane/registry/ip_allocator.h"
#include "controlplane/registry/port_allocator.h"

namespace keelson::registry {

class ServiceAllocator {
 public:
  ServiceAllocator(storage::Store& store, const Config& config, Clock& clock);

  // Parses the configured ranges, and makes or extends (to dual stack) the ServiceCIDR "kubernetes".
  Result<> Start(const storage::Limits& limits);
  Result<> EnsureDefaultCidr(const storage::Limits& limits);

  // The cluster's families, the default one first.
  const std::vector<std::string>& families() const { return families_; }
  IpAllocator& ips() { return ips_; }
  PortAllocator& ports() { return ports_; }
  storage::Store& store() { return store_; }

 private:
  Result<> Extend(const ObjectPtr& existing, const storage::Limits& limits);

  storage::Store& store_;
  const Config& config_;
  Clock& clock_;
  std::vector<IpPrefix> ranges_;
  std::vector<std::string> families_;
  IpAllocator ips_;
  PortAllocator ports_;
  bool mismatch_told_ = false;
};

}  // namespace keelson::registry
