// What /metrics tells of requests, under upstream's names.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/apiserver/handlers/context.h"
#include "controlplane/storage/store.h"
#include "lib/base/metrics.h"

namespace keelson::apiserver {

bool IsMutating(const RequestInfo& info);

class RequestMetrics {
 public:
  RequestMetrics();
  metrics::Value& Inflight(const RequestInfo& info);
  // Once a request; how long watches and streams go on is left out.
  void Record(const Context& context, std::chrono::duration<double> took);

 private:
  metrics::Family& total_;
  metrics::Family& seconds_;
  metrics::Family& sli_seconds_;
  metrics::Family& slo_seconds_;
  metrics::Family& terminated_;
  metrics::Family& inflight_;
};

// A watch or a stream, counted from here to its end in apiserver_longrunning_requests.
class LongRunning {
 public:
  explicit LongRunning(const Context& context);
  ~LongRunning() { count_.Add(-1); }
  LongRunning(const LongRunning&) = delete;
  LongRunning& operator=(const LongRunning&) = delete;

 private:
  metrics::Value& count_;
};

// Every stored resource once, for apiserver_resource_objects and its kin.
void CountObjects(const storage::Store& store);

}  // namespace keelson::apiserver
