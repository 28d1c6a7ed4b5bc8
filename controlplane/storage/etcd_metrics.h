// Latencies and errors of etcd requests, by operation and resource: upstream's etcd_request_* metrics.
#pragma once

#include <string_view>

#include "lib/api/scheme.h"
#include "lib/base/clock.h"

namespace keelson::storage {

void CountEtcdCall(std::string_view operation, const api::ResourceInfo& info, SteadyTime begin, bool good);

// Calls `call()`, one request to etcd that returns a Result, and measures it. Operations: get, list, create, update, delete.
template <typename Call>
auto Measured(std::string_view operation, const api::ResourceInfo& info, const Call& call) {
  const SteadyTime begin = SteadyTime::clock::now();
  auto result = call();
  CountEtcdCall(operation, info, begin, static_cast<bool>(result));
  return result;
}

}  // namespace keelson::storage
