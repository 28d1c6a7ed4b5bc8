#include "kubelet/volume/token_cache.h"

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::kubelet {

Result<ObjectSource::Token> TokenCache::GetToken(const corev1::Pod& pod, const std::string& audience,
                                                 int64_t seconds) {
  std::string key = pod.metadata().uid() + "/" + audience + "/" + std::to_string(seconds);
  {
    MutexLock lock(mutex_);
    auto it = tokens_.find(key);
    if (it != tokens_.end() && !it->second.IsDue(clock_)) return it->second.token;
  }
  auto token = objects_.RequestToken(pod, audience, seconds);
  MutexLock lock(mutex_);
  auto it = tokens_.find(key);
  if (!token) {  // an old one that still holds is better than none
    if (it != tokens_.end() && clock_.SteadyNow() < it->second.expires) return it->second.token;
    return token.error();
  }
  const std::chrono::nanoseconds asked = std::chrono::seconds(seconds);
  auto life = std::min<std::chrono::nanoseconds>(api::FromTime(token->expires) - clock_.Now(), asked);
  if (life <= asked / 10) life = asked;
  const auto fresh = std::min<std::chrono::nanoseconds>(life / 5 * 4, std::chrono::hours(24));
  tokens_[key] = {*token, clock_.Now() + fresh, clock_.SteadyNow() + fresh, clock_.SteadyNow() + life};
  return token;
}

void TokenCache::ForgetPod(const std::string& uid) {
  MutexLock lock(mutex_);
  std::erase_if(tokens_,
                [&](const auto& item) { return item.first.compare(0, uid.size() + 1, uid + "/") == 0; });
}

}  // namespace keelson::kubelet
