// kube-proxy's metrics, under upstream's names. Made on first use. Thread safe.
#pragma once

#include "lib/base/clock.h"
#include "lib/metrics/metrics.h"

namespace keelson::proxy {

// The metrics of one address family.
struct FamilyMetrics {
  explicit FamilyMetrics(const char* family);
  metrics::Histogram &sync, &full_sync, &partial_sync, &programming, &conntrack_sync;
  metrics::Value &last_synced, &last_queued, &sync_failures, &cleanup_failures, &flows_deleted;
  metrics::Value &no_local_internal, &no_local_external;  // Services with policy Local and no endpoint here
  metrics::Value& refused;                                // Services that the kernel refuses
};

struct ChangeMetrics {
  ChangeMetrics();
  metrics::Value &services, &services_pending, &endpoints, &endpoints_pending;
};

FamilyMetrics& MetricsOf(bool v4);
ChangeMetrics& MetricsOfChanges();
// Counts a request to /livez or /healthz by its status code.
void CountHealthAnswer(bool live, int code);

inline double Seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}
inline double Stamp(WallTime time) { return Seconds(time.time_since_epoch()); }

}  // namespace keelson::proxy
