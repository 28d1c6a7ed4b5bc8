// ClusterTrustBundles of the API server, read when a pod needs them, in whichever version it serves.
#pragma once

#include <string>
#include <vector>

#include "kubelet/container/objects.h"
#include "lib/base/mutex.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

class TrustBundles {  // thread safe
 public:
  explicit TrustBundles(client::RestClient api) : api_(std::move(api)) {}
  // As ObjectSource::GetTrustBundles.
  Result<std::vector<TrustBundle>> Get(const std::string& name);

 private:
  // "v1beta1"; empty when no version is served.
  Result<std::string> Version();

  const client::RestClient api_;
  Mutex mutex_;
  std::string version_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
