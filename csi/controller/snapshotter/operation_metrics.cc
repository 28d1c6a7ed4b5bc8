#include "csi/controller/snapshotter/operation_metrics.h"

#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

metrics::Family& Seconds() {
  static metrics::Family& family =
      metrics::Histograms("snapshot_controller_operation_total_seconds",
                          "Total number of seconds spent by the controller on an operation",
                          {.1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600},
                          {"driver_name", "operation_name", "snapshot_type", "operation_status"});
  return family;
}

metrics::Value& InFlight() {
  static metrics::Value& value =
      metrics::Gauge("snapshot_controller_operations_in_flight", "Total number of operations in flight")
          .With();
  return value;
}

}  // namespace

OperationMetrics::OperationMetrics(Clock& clock) : clock_(clock) {}

void OperationMetrics::Begin(const char* operation, const Snapshot& snapshot, const std::string& driver) {
  MutexLock lock(mutex_);
  Begun& begun = begun_[{snapshot.Key(), operation}];
  if (begun.uid != snapshot.meta.uid()) {
    begun = {snapshot.meta.uid(), clock_.SteadyNow(), driver,
             snapshot.content ? "pre-provisioned" : "dynamic"};
  }
  if (begun.driver.empty()) begun.driver = driver;
  InFlight().Set(static_cast<double>(begun_.size()));
}

void OperationMetrics::End(const char* operation, const Snapshot& snapshot, const std::string& driver,
                           const char* status) {
  const auto found = begun_.find({snapshot.Key(), operation});
  if (found == begun_.end()) return;
  const Begun& begun = found->second;
  if (begun.uid == snapshot.meta.uid()) {
    std::string of = driver.empty() ? begun.driver : driver;
    if (of.empty()) of = "unknown";
    const std::chrono::duration<double> took = clock_.SteadyNow() - begun.at;
    Seconds().HistogramWith({of, operation, begun.type, status}).Observe(took.count());
  }
  begun_.erase(found);
}

void OperationMetrics::Succeed(const char* operation, const Snapshot& snapshot, const std::string& driver) {
  MutexLock lock(mutex_);
  std::string of = driver;
  if (const auto known = begun_.find({snapshot.Key(), operation}); of.empty() && known != begun_.end()) {
    of = known->second.driver;
  }
  End(operation, snapshot, of, "success");
  if (operation == std::string_view(kDeleteSnapshot)) {
    End(kCreateSnapshot, snapshot, of, "cancel");
    End(kCreateSnapshotAndReady, snapshot, of, "cancel");
  }
  InFlight().Set(static_cast<double>(begun_.size()));
}

void OperationMetrics::Forget(const std::string& key) {
  MutexLock lock(mutex_);
  for (const char* operation : {kCreateSnapshot, kCreateSnapshotAndReady, kDeleteSnapshot}) {
    begun_.erase({key, operation});
  }
  InFlight().Set(static_cast<double>(begun_.size()));
}

}  // namespace keelson::csi::controller
