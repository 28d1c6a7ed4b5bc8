// What /metrics tells of requests, under upstream's names.
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
  // Once a request; how long watches and streams go on is left out. `took`: since it came; `served`: of that,
  // what was no waiting for its turn.
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

// What the filters before a handler take: authentication, impersonation, authorization, audit.
void ObserveFilter(const char* filter, SteadyTime begin);
// Of a reply to a read, as it goes over the wire.
void ObserveResponseSize(const Context& context, size_t bytes);
// A request that the server has sent itself.
void CountSelfRequest(const RequestInfo& info);
// Requests that wait for seats.
void TellWaiting(double reads, double writes);

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

// Connections that ended before a request came.
metrics::Value& HandshakeErrors();

// Every stored resource once, for apiserver_resource_objects and its kin.
void CountObjects(const storage::Store& store);

}  // namespace keelson::apiserver
