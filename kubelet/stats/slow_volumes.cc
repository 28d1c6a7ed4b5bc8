#include "kubelet/stats/slow_volumes.h"

#include <map>
#include <thread>

#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct SlowVolumes::State {
  struct Volume {
    std::optional<FsUsage> usage;
    SteadyTime measured, asked;
    bool at_work = false, known = false;  // known: measured once, whatever the result
  };
  Mutex mutex;
  CondVar done;
  std::map<std::string, Volume> volumes KEELSON_GUARDED_BY(mutex);
};

SlowVolumes::SlowVolumes(Measure measure, std::chrono::nanoseconds period, Clock& clock,
                         std::chrono::milliseconds patience)
    : measure_(std::move(measure)),
      period_(period),
      clock_(clock),
      patience_(patience),
      state_(std::make_shared<State>()) {}

std::optional<FsUsage> SlowVolumes::Latest(const std::string& path) {
  const SteadyTime now = clock_.SteadyNow();
  MutexLock lock(state_->mutex);
  State::Volume& volume = state_->volumes[path];
  volume.asked = now;
  const bool due = !volume.known || now - volume.measured >= period_;
  if (!volume.at_work && due) {
    volume.at_work = true;
    volume.measured = now;
    std::thread([state = state_, measure = measure_, path] {
      const std::optional<FsUsage> usage = measure(path);
      MutexLock held(state->mutex);
      State::Volume& measured = state->volumes[path];
      measured.usage = usage;
      measured.known = true;
      measured.at_work = false;
      state->done.notify_all();
    }).detach();
    const auto until = std::chrono::steady_clock::now() + patience_;
    while (volume.at_work && state_->done.wait_until(state_->mutex, until) != std::cv_status::timeout) {
    }
  }
  return volume.usage;
}

void SlowVolumes::Forget(std::chrono::nanoseconds unasked) {
  const SteadyTime now = clock_.SteadyNow();
  MutexLock lock(state_->mutex);
  std::erase_if(state_->volumes,
                [&](const auto& item) { return !item.second.at_work && now - item.second.asked > unasked; });
}

}  // namespace keelson::kubelet
