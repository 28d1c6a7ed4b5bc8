// Request metrics, with upstream's names.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/storage/store.h"
#include "lib/base/clock.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {

bool IsMutating(const RequestInfo& info);
std::string ScopeLabel(const RequestInfo& info);  // resource, namespace, cluster, or empty

class RequestMetrics {
 public:
  RequestMetrics();
  metrics::Value& Inflight(const RequestInfo& info);
  // Call once per request; skips the duration of watches and streams. `took`: since arrival; `served`: `took`
  // without queueing.
  void Record(const Context& context, std::chrono::duration<double> took,
              std::chrono::duration<double> served);

 private:
  metrics::Family& total_;
  metrics::Family& seconds_;
  metrics::Family& sli_seconds_;
  metrics::Family& terminated_;
  metrics::Family& inflight_;
  metrics::Family& body_sizes_;
  metrics::Family& validation_seconds_;
};

// Records the duration of a filter: authentication, impersonation, authorization, audit.
void ObserveFilter(const char* filter, SteadyTime begin);
// Records the size of the response to a read, as sent.
void ObserveResponseSize(const Context& context, size_t bytes);
// Counts a request that the server sends to itself.
void CountSelfRequest(const RequestInfo& info);
// Sets the number of requests that wait for seats.
void TellWaiting(double reads, double writes);

// Counts a watch or stream in apiserver_longrunning_requests during its lifetime.
class LongRunning {
 public:
  explicit LongRunning(const Context& context);
  ~LongRunning() { count_.Add(-1); }
  LongRunning(const LongRunning&) = delete;
  LongRunning& operator=(const LongRunning&) = delete;

 private:
  metrics::Value& count_;
};

// Counts connections that ended before a request.
metrics::Value& HandshakeErrors();

// Sets apiserver_resource_objects and related gauges, for each stored resource.
void CountObjects(const storage::Store& store);

}  // namespace keelson::apiserver
