#include "kubelet/node/startup_times.h"

#include <time.h>

#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

double SinceBoot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void Tell(const std::string& part, const char* help, double seconds) {
  metrics::Gauge("kubelet_node_startup_" + part + "duration_seconds", help).With().Set(seconds);
}

}  // namespace

StartupTimes::StartupTimes(Clock& clock)
    : clock_(clock), before_kubelet_(SinceBoot()), begin_(clock.SteadyNow()) {}

double StartupTimes::Since(SteadyTime begin) const {
  return std::chrono::duration<double>(clock_.SteadyNow() - begin).count();
}

void StartupTimes::Registering() {
  if (!registering_) registering_ = clock_.SteadyNow();
}

void StartupTimes::Registered() {
  if (!registering_ || registered_) return;
  registered_ = clock_.SteadyNow();
  Tell("pre_kubelet_", "Duration in seconds of node startup before kubelet starts.", before_kubelet_);
  Tell("pre_registration_", "Duration in seconds of node startup before registration.",
       std::chrono::duration<double>(*registering_ - begin_).count());
  Tell("registration_", "Duration in seconds of node startup during registration.", Since(*registering_));
}

void StartupTimes::Ready() {
  if (!registered_ || ready_) return;
  ready_ = true;
  Tell("post_registration_", "Duration in seconds of node startup after registration.", Since(*registered_));
  Tell("", "Duration in seconds of node startup in total.", before_kubelet_ + Since(begin_));
}

}  // namespace keelson::kubelet
