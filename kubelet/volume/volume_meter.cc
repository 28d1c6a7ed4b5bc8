#include "kubelet/volume/volume_meter.h"

namespace keelson::kubelet {

struct VolumeMeter::State {
  State(VolumeManager& given, Paths given_paths, TellAbnormal given_tell)
      : volumes(given), paths(std::move(given_paths)), tell(std::move(given_tell)) {}
  void TellOf(const std::string& path, const std::optional<Result<VolumeMetrics>>& measured) const;

  VolumeManager& volumes;
  const Paths paths;
  const TellAbnormal tell;
  std::stop_source ended;
  Mutex mutex;
  CondVar idle;
  int calls KEELSON_GUARDED_BY(mutex) = 0;
};

void VolumeMeter::State::TellOf(const std::string& path,
                                const std::optional<Result<VolumeMetrics>>& measured) const {
  if (!tell || !measured || !*measured || !(*measured)->abnormal.value_or(false)) return;
  // <pods>/<uid>/volumes/...
  const std::string pods = paths.Pods() + "/";
  const std::string uid = path.substr(pods.size(), path.find('/', pods.size()) - pods.size());
  if (auto volume = volumes.volumes().FindByPath(uid, path)) {
    tell(uid, volume->volume, (*measured)->condition);
  }
}

VolumeMeter::VolumeMeter(VolumeManager& volumes, Paths paths, TellAbnormal tell)
    : state_(std::make_shared<State>(volumes, std::move(paths), std::move(tell))) {}

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
    state->TellOf(path, measured);
    MutexLock lock(state->mutex);
    --state->calls;
    state->idle.notify_all();
    return measured;
  };
}

}  // namespace keelson::kubelet
