// How long etcd takes, and what it refuses, by operation and resource: upstream's etcd_request_* metrics.
#pragma once

#include <string_view>

#include "lib/api/scheme.h"
#include "lib/base/clock.h"

namespace keelson::storage {

void CountEtcdCall(std::string_view operation, const api::ResourceInfo& info, SteadyTime begin, bool good);

// `call()` is one request to etcd and answers with a Result. Operations: get, list, create, update, delete.
template <typename Call>
auto Measured(std::string_view operation, const api::ResourceInfo& info, const Call& call) {
  const SteadyTime begin = SteadyTime::clock::now();
  auto result = call();
  CountEtcdCall(operation, info, begin, static_cast<bool>(result));
  return result;
}

}  // namespace keelson::storage
