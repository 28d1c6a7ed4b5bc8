// What /metrics tells of requests, under upstream's names.
#pragma once

#include <chrono>

#include "controlplane/apiserver/handlers/context.h"
#include "controlplane/storage/store.h"
#include "lib/base/metrics.h"

namespace keelson::apiserver {

bool IsMutating(const RequestInfo& info);

class RequestMetrics {
 public:
  RequestMetrics();
  metrics::Value& Inflight(const RequestInfo& info);
  // Once a request; `took` is left out for watches.
  void Record(const Context& context, std::chrono::duration<double> took);

 private:
  metrics::Family& total_;
  metrics::Family& seconds_;
  metrics::Family& inflight_;
};

// Every stored resource once, for apiserver_storage_objects.
void CountObjects(storage::Store& store);

}  // namespace keelson::apiserver
