#include "controlplane/controllers/endpoints/trigger_time.h"

#include "lib/api/meta.h"

namespace keelson::controllers {

std::optional<WallTime> TriggerTimes::Next(const corev1::Service& service,
                                           const std::vector<EndpointPodPointer>& pods) {
  State now;
  now.created = api::FromTime(service.metadata().creation_timestamp());
  MutexLock lock(mutex_);
  auto [it, fresh] = states_.try_emplace(api::KeyOf(service));
  State& before = it->second;
  std::optional<WallTime> earliest;
  auto consider = [&](WallTime time, WallTime last) {
    if (time > last && (!earliest || time < *earliest)) earliest = time;
  };
  for (const EndpointPodPointer& pod : pods) {
    if (!pod->ready_changed) continue;
    now.pods.emplace(pod->name, *pod->ready_changed);
    auto last = before.pods.find(pod->name);
    consider(*pod->ready_changed, last == before.pods.end() ? WallTime() : last->second);
  }
  consider(now.created, before.created);
  before = std::move(now);
  if (fresh) return before.created;
  return earliest;
}

void TriggerTimes::Forget(const std::string& key) {
  MutexLock lock(mutex_);
  states_.erase(key);
}

void SetTriggerTime(std::optional<WallTime> time, metav1::ObjectMeta& meta) {
  if (time) {
    (*meta.mutable_annotations())[kTriggerTime] = api::FormatTime(api::ToTime(*time));
  } else {
    meta.mutable_annotations()->erase(kTriggerTime);
  }
}

}  // namespace keelson::controllers
