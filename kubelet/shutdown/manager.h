// The node shutdown manager (KEP-2000, KEP-2712): delays a shutdown of the system until the pods have ended.
//
//   lock held --PrepareForShutdown(true)--> no new pods, node NotReady --> pods end, group by group
//       ^                                                                        |
//       +-- PrepareForShutdown(false): the shutdown is off <---------------- lock released
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/shutdown/plan.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/k8s/pods/fit.h"
#include "lib/linux/logind.h"

namespace keelson::kubelet {

class ShutdownManager {
 public:
  struct Dependencies {
    std::function<Result<std::unique_ptr<linux::Logind>>()> connect;
    std::function<std::vector<std::shared_ptr<const corev1::Pod>>()> active;
    // Starts the termination of a pod.
    std::function<void(const corev1::Pod& pod, std::chrono::seconds grace)> end;
    std::function<void(const std::string& message)> event;  // of the node, reason Shutdown
    std::function<void()> changed;                          // the node's status has to be updated now
  };
  // `drop_in_dir`: for a drop-in that sets logind's InhibitDelayMaxSec.
  ShutdownManager(Dependencies dependencies, std::vector<ShutdownPeriod> periods,
                  std::string drop_in_dir = "/etc/systemd/logind.conf.d", Clock& clock = Clock::Real());

  bool enabled() const { return TotalOf(periods_) > std::chrono::seconds(0); }
  // Until `stop`. Reconnects to logind. An error: the first connection failed.
  Result<> Run(std::stop_token stop);

  bool shutting_down() const { return shutting_down_; }
  std::optional<k8s::AdmitFailure> Admit() const;  // a failure while the node shuts down

 private:
  Result<> Prepare(linux::Logind& logind);
  Result<> Follow(linux::Logind& logind, std::stop_token stop);
  void EndPods(std::stop_token stop);
  void EndGroup(const ShutdownGroup& group, std::stop_token stop);

  const Dependencies deps_;
  const std::vector<ShutdownPeriod> periods_;
  const std::string drop_in_dir_;
  Clock& clock_;
  std::atomic<bool> shutting_down_ = false;
};

// Status reason and message of pods that a shutdown terminates.
inline constexpr char kShutdownReason[] = "Terminated";
inline constexpr char kShutdownMessage[] = "Pod was terminated in response to imminent node shutdown.";

}  // namespace keelson::kubelet
