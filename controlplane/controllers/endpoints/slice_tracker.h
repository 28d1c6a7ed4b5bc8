// Resource versions of written EndpointSlices, as upstream's EndpointSliceTracker. A sync on a store that
// lags behind would create the same slices again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class SliceTracker {  // thread safe
 public:
  using Slices = std::vector<std::shared_ptr<const discoveryv1::EndpointSlice>>;

  // True when `slices`, all slices of a Service in the store, are older than the last writes.
  bool IsBehind(const std::string& service, const Slices& slices);
  void NoteWritten(const std::string& service, const discoveryv1::EndpointSlice& slice);
  void NoteGone(const std::string& service, const std::string& slice);
  void Forget(const std::string& service);

 private:
  Mutex mutex_;
  // By Service, then slice: the resource version of the last write.
  std::map<std::string, std::map<std::string, uint64_t>> written_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
