#include "lib/client/event_correlator.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/api/meta.h"

namespace keelson::client {
namespace {

constexpr double kBurst = 25;
constexpr std::chrono::seconds kRefill{300};
constexpr size_t kSimilarLimit = 10;
constexpr std::chrono::minutes kSimilarWindow{10};

std::string Joined(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (std::string_view part : parts) (out += part) += '\n';
  return out;
}

uint64_t Hash(std::string_view text) { return std::hash<std::string_view>()(text); }

// The parts of an object, such as a pod's containers, share one rate limit.
std::string KeyOfObject(const corev1::ObjectReference& o) {
  return Joined({o.kind(), o.namespace_(), o.name(), o.uid(), o.api_version()});
}

}  // namespace

template <typename T>
T& EventCorrelator::Bounded<T>::At(uint64_t key, const T& initial) {
  auto [it, added] = map.try_emplace(key, initial);
  if (added) {
    order.push_back(key);
    if (order.size() > kMaxEntries) {
      map.erase(order.front());
      order.pop_front();
    }
  }
  return it->second;
}

bool EventCorrelator::TakeToken(uint64_t object, WallTime now) {
  Bucket& bucket = buckets_.At(object, {kBurst, now});
  const std::chrono::duration<double> passed = std::max(now - bucket.last, WallTime::duration::zero());
  bucket.tokens = std::min(kBurst, bucket.tokens + passed.count() / kRefill.count());
  bucket.last = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

bool EventCorrelator::FoldMessage(uint64_t key, std::string_view message, WallTime now) {
  Similar& similar = similar_.At(key, {{}, now});
  if (now - similar.last > kSimilarWindow) similar.messages.clear();
  similar.last = now;
  const uint64_t hash = Hash(message);
  auto& known = similar.messages;
  if (known.size() < kSimilarLimit && std::find(known.begin(), known.end(), hash) == known.end()) {
    known.push_back(hash);
  }
  return similar.messages.size() >= kSimilarLimit;
}

std::string EventCorrelator::NewName(const corev1::ObjectReference& object, WallTime now) {
  int64_t stamp = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  last_stamp_ = std::max(stamp, last_stamp_ + 1);
  return fmt::format("{}.{:x}", object.name(), last_stamp_);
}

std::optional<EventCorrelator::Outcome> EventCorrelator::Correlate(const corev1::ObjectReference& object,
                                                                   std::string_view type,
                                                                   std::string_view reason,
                                                                   std::string message, WallTime now) {
  const std::string object_key = KeyOfObject(object);
  std::string key = object_key + Joined({object.field_path(), type, reason});
  if (FoldMessage(Hash(key), message, now)) {
    message = "(combined from similar events): " + message;
  } else {
    key += message;
  }
  if (!TakeToken(Hash(object_key), now)) return std::nullopt;

  const uint64_t hash = Hash(key);
  Series& series = series_.At(hash, {NewName(object, now), 0, now});
  ++series.count;
  Outcome outcome;
  outcome.key = hash;
  corev1::Event& event = outcome.event;
  event.mutable_metadata()->set_name(series.name);
  event.mutable_metadata()->set_namespace_(object.namespace_().empty() ? "default" : object.namespace_());
  *event.mutable_involved_object() = object;
  event.set_reason(std::string(reason));
  event.set_message(std::move(message));
  event.mutable_source()->set_component(component_);
  if (!host_.empty()) event.mutable_source()->set_host(host_);
  *event.mutable_first_timestamp() = api::ToTime(series.first);
  *event.mutable_last_timestamp() = api::ToTime(now);
  event.set_count(series.count);
  event.set_type(std::string(type));
  event.set_reporting_component(component_);
  if (!host_.empty()) event.set_reporting_instance(host_);
  return outcome;
}

void EventCorrelator::Renamed(uint64_t key, const std::string& name) {
  auto it = series_.map.find(key);
  if (it != series_.map.end()) it->second = {name, 1, it->second.first};
}

}  // namespace keelson::client
