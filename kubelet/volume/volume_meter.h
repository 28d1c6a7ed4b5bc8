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
  // `volumes` has to outlive the meter.
  VolumeMeter(VolumeManager& volumes, Paths paths);
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
