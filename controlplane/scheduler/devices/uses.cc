#include "controlplane/scheduler/devices/uses.h"

#include <fmt/format.h>

namespace keelson::scheduler {

std::string PoolId(std::string_view driver, std::string_view pool) {
  return fmt::format("{}/{}", driver, pool);
}

void DeviceUses::Count(const resourcev1::AllocationResult& allocation, int by) {
  for (const auto& result : allocation.devices().results()) {
    if (result.admin_access()) continue;
    const std::string id = PoolId(result.driver(), result.pool());
    PoolUse& pool = pools_[id];
    DeviceUse& use = pool[result.device()];
    if (!result.has_share_id()) {
      use.claims += by;
    } else {
      use.shares += by;
      for (const auto& [name, quantity] : result.consumed_capacity()) {
        api::Amount& consumed = use.consumed[name];
        by > 0 ? consumed += api::Amount::Of(quantity) : consumed -= api::Amount::Of(quantity);
      }
    }
    if (use.claims == 0 && use.shares == 0) pool.erase(result.device());
    if (pool.empty()) pools_.erase(id);
  }
}

const PoolUse* DeviceUses::Of(const std::string& pool_id) const {
  const auto it = pools_.find(pool_id);
  return it == pools_.end() ? nullptr : &it->second;
}

size_t DeviceUses::devices() const {
  size_t count = 0;
  for (const auto& [id, pool] : pools_) count += pool.size();
  return count;
}

}  // namespace keelson::scheduler
