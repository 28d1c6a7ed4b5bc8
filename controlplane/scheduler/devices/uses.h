// Which devices are in use, by allocated claims (KEP-4381).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/quantity.h"

namespace keelson::scheduler {

namespace resourcev1 = api::resource::v1;

using Capacity = std::map<std::string, api::Amount, std::less<>>;

struct DeviceUse {
  int32_t claims =
      0;  // that have the device for themselves; a claim that is pending and assumed at once counts twice
  int32_t shares = 0;  // of a device that allows multiple allocations
  Capacity consumed;   // by the shares
};

// By name of the device.
using PoolUse = std::unordered_map<std::string, DeviceUse>;

// "driver/pool". A driver's name has no slash.
std::string PoolId(std::string_view driver, std::string_view pool);

// A value; not thread safe. Results with admin access use nothing: they come beside other users.
class DeviceUses {
 public:
  void Add(const resourcev1::AllocationResult& allocation) { Count(allocation, 1); }
  // `allocation` has been added.
  void Remove(const resourcev1::AllocationResult& allocation) { Count(allocation, -1); }
  const PoolUse* Of(const std::string& pool_id) const;  // null: no device of the pool is in use
  size_t devices() const;                               // in use

 private:
  void Count(const resourcev1::AllocationResult& allocation, int by);
  std::unordered_map<std::string, PoolUse> pools_;
};

}  // namespace keelson::scheduler
