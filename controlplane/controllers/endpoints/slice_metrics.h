// Metrics of the EndpointSlice controller, with upstream's names.
#pragma once

#include <map>
#include <string>

#include "controlplane/controllers/endpoints/slice_plan.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

// Counts one sync of a Service; `applied`: the result of writing `plan`.
void CountSliceSync(const corev1::Service& service, const SlicePlan& plan, const Result<>& applied);

// Gauges summed over all Services. Thread safe.
class SliceTotals {
 public:
  // Call after a successful sync that found `existing` slices.
  void Set(const std::string& key, const corev1::Service& service, const SlicePlan& plan, size_t existing);
  void Forget(const std::string& key);

 private:
  struct One {
    size_t endpoints = 0, slices = 0, ideal = 0;
    std::string distribution;
  };
  void Move(const One& from, const One& to) KEELSON_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<std::string, One> of_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
