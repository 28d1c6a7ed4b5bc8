// The pod lifecycle event generator (PLEG): notices what happens in the runtime, by its event stream or by relisting
// every second. If events do not name the pod (containerd before 1.7), it relists for a moment after each, and until
// the list shows the exit that an event announced. What a pod's worker has seen itself (Seen) is not reported.
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

  // The pod's worker has seen this; only differences from it are reported.
  void Seen(const std::string& uid, const PodRuntimeStatus& status);
  // Whether the last relist, which is recent, showed the pod like this.
  bool Unchanged(const std::string& uid, const PodRuntimeStatus& status) const;
  // Whether a relist has found nothing of the pod, and nothing was Seen since.
  bool Unknown(const std::string& uid) const;
  // Lists the runtime's pods once, and calls on_change for those that differ.
  Result<> Relist(std::stop_token stop);
  std::set<std::string> Uids() const;  // of pods that the runtime has, as of the last relist
  // Why the PLEG is unhealthy: no relist has succeeded for 3 minutes. For the node's Ready condition; nullopt:
  // healthy.
  std::optional<std::string> Unhealthy() const;
  // Until `stop`. Calls `ready` after the first relist.
  void Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  void RunEvents(std::stop_token stop);
  void Heard(const cri::ContainerEvent& event);
  SteadyTime NextRelist(SteadyTime last) const KEELSON_REQUIRES(mutex_);

  cri::RuntimeService& runtime_;
  const ChangeFunction on_change_;
  Clock& clock_;
  const std::chrono::milliseconds period_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Fingerprint> pods_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> seen_at_
      KEELSON_GUARDED_BY(mutex_);  // by uid: the count of relists begun then
  uint64_t relists_ KEELSON_GUARDED_BY(mutex_) = 0;
  SteadyTime last_good_ KEELSON_GUARDED_BY(mutex_);
  bool listed_ KEELSON_GUARDED_BY(mutex_) = false;
  bool events_ KEELSON_GUARDED_BY(mutex_) = false;
  SteadyTime news_until_ KEELSON_GUARDED_BY(mutex_);
  struct End {
    SteadyTime until;
    uint64_t relists;  // number of relists that had begun when the event arrived
  };
  std::map<std::string, End> ends_ KEELSON_GUARDED_BY(mutex_);  // told of and not listed yet, by id
};

}  // namespace keelson::kubelet
