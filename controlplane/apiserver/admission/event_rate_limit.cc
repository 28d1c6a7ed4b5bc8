// EventRateLimit: token buckets for events, per server, namespace, user, or source and object. A request
// without a token gets 429.
#include <algorithm>
#include <list>
#include <map>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/proto/events_v1.pb.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {
namespace {

// The buckets of one limit by key; evicts the least recently used one.
class Buckets {
 public:
  explicit Buckets(EventRateLimitConfig::Limit limit) : limit_(std::move(limit)) {}
  const std::string& type() const { return limit_.type; }

  bool Take(const std::string& key, SteadyTime now) {
    MutexLock lock(mutex_);
    auto found = buckets_.find(key);
    if (found == buckets_.end()) {
      if (buckets_.size() >= static_cast<size_t>(std::max(1, limit_.cache_size))) {
        buckets_.erase(used_.back());
        used_.pop_back();
      }
      used_.push_front(key);
      found = buckets_.emplace(key, Bucket{static_cast<double>(limit_.burst), now, used_.begin()}).first;
    } else {
      used_.splice(used_.begin(), used_, found->second.place);
    }
    Bucket& bucket = found->second;
    const double seconds = std::chrono::duration<double>(now - bucket.filled).count();
    bucket.tokens = std::min<double>(limit_.burst, bucket.tokens + seconds * limit_.qps);
    bucket.filled = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

 private:
  struct Bucket {
    double tokens;
    SteadyTime filled;
    std::list<std::string>::iterator place;
  };
  const EventRateLimitConfig::Limit limit_;
  Mutex mutex_;
  std::map<std::string, Bucket> buckets_ KEELSON_GUARDED_BY(mutex_);
  std::list<std::string> used_ KEELSON_GUARDED_BY(mutex_);  // most recently used first
};

std::string SourceAndObject(const std::string& component, const std::string& host,
                            const corev1::ObjectReference& about) {
  return component + host + about.kind() + about.namespace_() + about.name() + about.uid() +
         about.api_version();
}

class EventRateLimit : public AdmissionPlugin {
 public:
  explicit EventRateLimit(const EventRateLimitConfig& config) {
    for (const auto& limit : config.limits) limits_.push_back(std::make_unique<Buckets>(limit));
  }
  std::string_view name() const override { return "EventRateLimit"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (request.info.resource != "events" || !request.object || request.dry_run) return {};
    const SteadyTime now = SteadyTime::clock::now();
    std::vector<std::string> reached;
    for (const auto& limit : limits_) {
      const std::string key = KeyOf(limit->type(), request);
      if (!limit->Take(key, now)) {
        reached.push_back(fmt::format("limit reached on type {} for key {}", limit->type(), key));
      }
    }
    if (reached.empty()) return {};
    const std::string what = reached.size() == 1 ? reached[0] : fmt::format("[{}]", fmt::join(reached, ", "));
    return Error(Code::kTooManyRequests, "Too many requests: " + what);
  }

 private:
  static std::string KeyOf(const std::string& type, const AdmissionRequest& request) {
    if (type == "Namespace") return std::string(request.ns);
    if (type == "User") return request.user.name;
    if (type != "SourceAndObject") return "";
    if (request.info.group.empty()) {
      const auto& event = request.Object<corev1::Event>();
      return SourceAndObject(event.source().component(), event.source().host(), event.involved_object());
    }
    const auto& event = request.Object<api::events::v1::Event>();
    return SourceAndObject(event.reporting_controller(), event.reporting_instance(), event.regarding());
  }

  std::vector<std::unique_ptr<Buckets>> limits_;
};

}  // namespace

PluginPtr NewEventRateLimit(const EventRateLimitConfig& config) {
  return std::make_unique<EventRateLimit>(config);
}

}  // namespace keelson::apiserver
