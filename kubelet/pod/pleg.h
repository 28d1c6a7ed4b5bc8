// Notices what happens in the runtime: by its event stream where it has one, else by listing every second.
// Where events do not name the pod (containerd before 1.7), there are such lists for a moment after each, and
// until they show the end that an event has told of.
// Whatever a pod's worker has seen itself (Seen) is no news.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "kubelet/container/runtime_status.h"
#include "kubelet/cri/runtime.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class Pleg {  // thread safe
 public:
  using ChangeFunction = std::function<void(const std::string& uid)>;
  Pleg(cri::RuntimeService& runtime, ChangeFunction on_change, Clock& clock = Clock::Real(),
       std::chrono::milliseconds period = std::chrono::seconds(1))
      : runtime_(runtime), on_change_(std::move(on_change)), clock_(clock), period_(period) {}

  void Seen(const std::string& uid, const PodRuntimeStatus& status);
  // The last list, which is not old, showed the pod like this.
  bool Unchanged(const std::string& uid, const PodRuntimeStatus& status) const;
  // The runtime has been listed, and nothing of the pod was there or has been seen since.
  bool Unknown(const std::string& uid) const;
  // Asks the runtime once; changes are told.
  Result<> Relist(std::stop_token stop);
  std::set<std::string> Uids() const;  // of pods that the runtime had something of at the last look
  // The runtime has not answered for longer than 3 minutes: why, for the node's Ready condition.
  std::optional<std::string> Unhealthy() const;
  void Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  void RunEvents(std::stop_token stop);
  void Heard(const cri::ContainerEvent& event);
  SteadyTime NextRelist(SteadyTime last) const REQUIRES(mutex_);

  cri::RuntimeService& runtime_;
  const ChangeFunction on_change_;
  Clock& clock_;
  const std::chrono::milliseconds period_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Fingerprint> pods_ GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> seen_at_ GUARDED_BY(mutex_);  // by uid: the count of relists begun then
  uint64_t relists_ GUARDED_BY(mutex_) = 0;
  SteadyTime last_good_ GUARDED_BY(mutex_);
  bool listed_ GUARDED_BY(mutex_) = false;
  bool events_ GUARDED_BY(mutex_) = false;
  SteadyTime news_until_ GUARDED_BY(mutex_);
  struct End {
    SteadyTime until;
    uint64_t relists;  // begun when it was told of
  };
  std::map<std::string, End> ends_ GUARDED_BY(mutex_);  // told of and not listed yet, by id
};

}  // namespace keelson::kubelet
