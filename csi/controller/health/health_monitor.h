// Asks one driver for the condition of its bound volumes, and tells of abnormal ones in events of their claims, as
// external-health-monitor does: by ListVolumes if the driver has it, else volume by volume by ControllerGetVolume. Drivers
// without VOLUME_CONDITION are asked nothing.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "csi/controller/common/controller.h"

namespace keelson::csi::controller {

struct HealthOptions {
  std::chrono::nanoseconds list_volumes{std::chrono::minutes(5)};  // --list-volumes-interval
  std::chrono::nanoseconds volume{
      std::chrono::minutes(1)};  // --monitor-interval: between calls for one volume
};

class HealthMonitor : public Controller {
 public:
  HealthMonitor(const Environment& environment, HealthOptions options);
  // Key: the name of a volume, or "*" for all at once.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<Requeue> CheckAll(std::stop_token stop);
  Result<Requeue> CheckOne(const std::string& name, const DriverInfo& info, std::stop_token stop);
  bool Ours(const Volume& volume, const DriverInfo& info) const;
  void Tell(const Volume& volume, const v1::VolumeCondition& condition);
  // Learns once which claims have an event of an abnormal volume, so that a new process reports their recovery.
  Result<> Remember(std::stop_token stop);

  const HealthOptions options_;
  client::Informer<Volume>& volumes_;
  Mutex mutex_;
  std::optional<std::set<std::string>> abnormal_
      KEELSON_GUARDED_BY(mutex_);  // UIDs of claims; nullopt: not read yet
};

}  // namespace keelson::csi::controller
