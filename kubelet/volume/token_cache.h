// Tokens of pods' service accounts: asked for once, and again when four fifths of their life, or a day, have
// gone. The wall clock may be set meanwhile: the sooner of both clocks counts, and a life that can hardly be
// true is the one asked for.
#pragma once

#include <map>
#include <string>

#include "kubelet/container/objects.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class TokenCache {  // thread safe
 public:
  TokenCache(ObjectSource& objects, Clock& clock) : objects_(objects), clock_(clock) {}

  Result<std::string> Get(const corev1::Pod& pod, const std::string& audience, int64_t seconds);
  void ForgetPod(const std::string& uid);

 private:
  struct Entry {
    std::string value;
    WallTime renew_at;
    SteadyTime renew, expires;
    bool IsDue(Clock& clock) const { return clock.Now() >= renew_at || clock.SteadyNow() >= renew; }
  };
  ObjectSource& objects_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Entry> tokens_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
