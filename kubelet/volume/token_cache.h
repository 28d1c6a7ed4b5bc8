// Caches tokens of pods' service accounts, and renews them after four fifths of their lifetime or a day. The wall clock
// may change: the sooner of both clocks counts, and an implausible lifetime counts as the requested one.
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

  // A valid token; blocks while one is requested. If the renewal fails, the old token is returned while it is valid.
  Result<ObjectSource::Token> GetToken(const corev1::Pod& pod, const std::string& audience, int64_t seconds);
  Result<std::string> Get(const corev1::Pod& pod, const std::string& audience, int64_t seconds) {
    KEELSON_ASSIGN_OR_RETURN(ObjectSource::Token token, GetToken(pod, audience, seconds));
    return std::move(token.value);
  }
  void ForgetPod(const std::string& uid);

 private:
  struct Entry {
    ObjectSource::Token token;
    WallTime renew_at;
    SteadyTime renew, expires;
    bool IsDue(Clock& clock) const { return clock.Now() >= renew_at || clock.SteadyNow() >= renew; }
  };
  ObjectSource& objects_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Entry> tokens_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
