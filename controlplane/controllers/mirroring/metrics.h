// Metrics of the EndpointSlice mirroring controller, with upstream's names.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "controlplane/controllers/mirroring/plan.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class MirrorMeters {  // thread safe
 public:
  // Counts a sync that wrote `plan`; `before`: the slices that existed.
  void Count(const std::string& key, const std::vector<SlicePointer>& before, const MirrorPlan& plan,
             std::chrono::duration<double> took);

 private:
  struct Totals {
    size_t endpoints = 0, slices = 0;
  };
  Mutex mutex_;
  std::map<std::string, Totals> of_ KEELSON_GUARDED_BY(mutex_);  // Services with slices only
};

}  // namespace keelson::controllers
