// How long snapshots take: the metrics of external-snapshotter's snapshot-controller, snapshot_controller_operation_total_seconds
// and snapshot_controller_operations_in_flight. Operations begin when this process first sees them.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "csi/controller/model/snapshots.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::csi::controller {

inline constexpr char kCreateSnapshot[] = "CreateSnapshot",
                      kCreateSnapshotAndReady[] = "CreateSnapshotAndReady",
                      kDeleteSnapshot[] = "DeleteSnapshot";

class OperationMetrics {  // thread safe
 public:
  explicit OperationMetrics(Clock& clock);
  // Once more: nothing. `driver` empty: not known yet.
  void Begin(const char* operation, const Snapshot& snapshot, const std::string& driver);
  // The end of a deletion cancels what is under way.
  void Succeed(const char* operation, const Snapshot& snapshot, const std::string& driver);
  void Forget(const std::string& key);  // NAMESPACE/NAME: the snapshot is gone

 private:
  struct Begun {
    std::string uid;
    SteadyTime at;
    std::string driver;
    const char* type = "";
  };
  void End(const char* operation, const Snapshot& snapshot, const std::string& driver, const char* status)
      KEELSON_REQUIRES(mutex_);

  Clock& clock_;
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Begun> begun_
      KEELSON_GUARDED_BY(mutex_);  // by snapshot and operation
};

}  // namespace keelson::csi::controller
