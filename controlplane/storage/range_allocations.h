// RangeAllocation objects of core/v1 in etcd, where all API servers of a cluster share what is taken of a range:
// /registry/ranges/servicenodeports has a bit for each node port. The API does not serve them, and they have no cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "controlplane/etcd/client.h"
#include "lib/base/error.h"

namespace keelson::storage {

struct RangeAllocation {
  std::string range;  // 30000-32767
  std::string data;   // a big-endian number without leading zeros; bit i stands for the range's i-th number
  int64_t revision = 0;  // 0: it does not exist
};

class RangeAllocations {  // thread safe; calls block
 public:
  // `json`: writes JSON rather than protobuf. Both are read.
  RangeAllocations(etcd::Client& client, bool json) : client_(client), json_(json) {}

  // `name`: servicenodeports. kInternal: the stored value cannot be read.
  Result<RangeAllocation> Get(std::string_view name, const etcd::Limits& limits);
  // Stores range and data if the revision in etcd is still `wanted.revision`. Returns true and sets the new revision; or
  // returns false after a lost race, with what is stored in `wanted`. After another error the write may have happened.
  Result<bool> Put(std::string_view name, RangeAllocation& wanted, const etcd::Limits& limits);

 private:
  etcd::Client& client_;
  const bool json_;
};

}  // namespace keelson::storage
