// Measures volumes by their plugins, for threads that may outlive the kubelet's components: a driver may take minutes to
// answer, and statistics do not wait for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kubelet/volume/volume_manager.h"

namespace keelson::kubelet {

class VolumeMeter {
 public:
  // `volume`: its name in the pod's spec. Called by each measurement that finds a volume not in order.
  using TellAbnormal =
      std::function<void(const std::string& uid, const std::string& volume, const std::string& condition)>;
  // `volumes`, and what `tell` uses, have to outlive the meter. `tell` may be empty.
  VolumeMeter(VolumeManager& volumes, Paths paths, TellAbnormal tell = {});
  // Ends calls to plugins, and waits for that.
  ~VolumeMeter();
  VolumeMeter(const VolumeMeter&) = delete;
  VolumeMeter& operator=(const VolumeMeter&) = delete;

  // As VolumeManager::Measure; kUnavailable once the meter has gone.
  using Measure = std::function<std::optional<Result<VolumeMetrics>>(const std::string& path)>;
  Measure function() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace keelson::kubelet
