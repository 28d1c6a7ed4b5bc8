#include "kubelet/volume/volume_meter.h"

namespace keelson::kubelet {

struct VolumeMeter::State {
  State(VolumeManager& given, Paths given_paths) : volumes(given), paths(std::move(given_paths)) {}
  VolumeManager& volumes;
  const Paths paths;
  std::stop_source ended;
  Mutex mutex;
  CondVar idle;
  int calls KEELSON_GUARDED_BY(mutex) = 0;
};

VolumeMeter::VolumeMeter(VolumeManager& volumes, Paths paths)
    : state_(std::make_shared<State>(volumes, std::move(paths))) {}

VolumeMeter::~VolumeMeter() {
  MutexLock lock(state_->mutex);
  state_->ended.request_stop();
  while (state_->calls > 0) state_->idle.wait(state_->mutex);
}

VolumeMeter::Measure VolumeMeter::function() const {
  return [state = state_](const std::string& path) -> std::optional<Result<VolumeMetrics>> {
    {
      MutexLock lock(state->mutex);
      if (state->ended.stop_requested()) {
        return Result<VolumeMetrics>(Error(Code::kUnavailable, "the kubelet ends"));
      }
      ++state->calls;
    }
    auto measured = state->volumes.Measure(state->paths, path, state->ended.get_token());
    MutexLock lock(state->mutex);
    --state->calls;
    state->idle.notify_all();
    return measured;
  };
}

}  // namespace keelson::kubelet
