#include "kubelet/pod/pleg.h"

#include <thread>

#include "kubelet/container/labels.h"
#include "kubelet/pod/pleg_metrics.h"
#include "lib/api/duration.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::minutes kPatience(3);
constexpr std::chrono::seconds kSlowRelist(60);  // while the event stream runs
constexpr std::chrono::seconds kNews(3);         // so long after an event lists are worth looking at
constexpr std::chrono::seconds kEnd(60);         // so long after an end that they do not show

std::string UidOf(const cri::Labels& labels) {
  auto it = labels.find(kPodUidLabel);
  return it == labels.end() ? std::string() : it->second;
}

}  // namespace

void Pleg::Seen(const std::string& uid, const PodRuntimeStatus& status) {
  Fingerprint fingerprint = FingerprintOf(status);
  MutexLock lock(mutex_);
  if (fingerprint.empty()) {
    pods_.erase(uid);
  } else {
    pods_[uid] = std::move(fingerprint);
  }
  seen_at_[uid] = relists_;
}

bool Pleg::Unchanged(const std::string& uid, const PodRuntimeStatus& status) const {
  const Fingerprint fingerprint = FingerprintOf(status);
  MutexLock lock(mutex_);
  const auto it = pods_.find(uid);
  return it != pods_.end() && it->second == fingerprint && clock_.SteadyNow() - last_good_ < 2 * kSlowRelist;
}

bool Pleg::Unknown(const std::string& uid) const {
  MutexLock lock(mutex_);
  return listed_ && !pods_.contains(uid);
}

Result<> Pleg::Relist(std::stop_token stop) {
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = ++relists_;
  }
  KEELSON_ASSIGN_OR_RETURN(auto sandboxes, runtime_.ListPodSandbox({}, stop));
  KEELSON_ASSIGN_OR_RETURN(auto containers, runtime_.ListContainers({}, stop));
  std::map<std::string, Fingerprint> now;
  std::set<std::string> live;
  for (const auto& sandbox : sandboxes) {
    if (sandbox.state == cri::SandboxState::kReady) live.insert(sandbox.id);
  }
  for (const auto& container : containers) {
    if (container.state == cri::ContainerState::kRunning) live.insert(container.id);
  }
  for (const auto& sandbox : sandboxes) {
    if (std::string uid = UidOf(sandbox.labels); !uid.empty()) {
      now[uid][sandbox.id] = static_cast<int>(sandbox.state);
    }
  }
  for (const auto& container : containers) {
    if (std::string uid = UidOf(container.labels); !uid.empty()) {
      now[uid][container.id] = static_cast<int>(container.state);
    }
  }
  std::set<std::string> changed;
  {
    MutexLock lock(mutex_);
    const SteadyTime time = clock_.SteadyNow();
    last_good_ = time;
    listed_ = true;
    std::erase_if(ends_, [&](const auto& item) {
      const bool listed = item.second.relists < number && !live.count(item.first);
      return listed || item.second.until <= time;
    });
    for (const auto& [uid, fingerprint] : pods_) {
      if (!now.count(uid)) changed.insert(uid);
    }
    for (const auto& [uid, fingerprint] : now) {
      if (auto it = pods_.find(uid); it == pods_.end() || it->second != fingerprint) changed.insert(uid);
    }
    for (const std::string& uid : changed) {
      auto seen = seen_at_.find(uid);
      // Its worker looked while this list was being made: who of the two is newer is not known. The worker's
      // word stands; the next list will tell.
      if (seen != seen_at_.end() && seen->second >= number) continue;
      if (auto it = now.find(uid); it != now.end()) {
        pods_[uid] = it->second;
      } else {
        pods_.erase(uid);
      }
    }
    std::erase_if(seen_at_, [&](const auto& item) { return item.second + 10 < number; });
  }
  for (const std::string& uid : changed) on_change_(uid);
  return {};
}

std::set<std::string> Pleg::Uids() const {
  MutexLock lock(mutex_);
  std::set<std::string> uids;
  for (const auto& [uid, fingerprint] : pods_) uids.insert(uid);
  return uids;
}

std::optional<std::string> Pleg::Unhealthy() const {
  MutexLock lock(mutex_);
  auto silent = clock_.SteadyNow() - last_good_;
  if (silent < kPatience) return std::nullopt;
  return "PLEG is not healthy: pleg was last seen active " + api::FormatGoDuration(silent.count()) +
         " ago; threshold is " + api::FormatGoDuration(std::chrono::nanoseconds(kPatience).count());
}

void Pleg::Heard(const cri::ContainerEvent& event) {
  {
    MutexLock lock(mutex_);
    events_ = true;
    if (event.pod_uid.empty()) {
      news_until_ = clock_.SteadyNow() + kNews;
      if (event.type == cri::ContainerEvent::Type::kStopped) {
        ends_[event.container_id] = {clock_.SteadyNow() + kEnd, relists_};
      }
      changed_.notify_all();
    }
  }
  if (!event.pod_uid.empty()) on_change_(event.pod_uid);
}

void Pleg::RunEvents(std::stop_token stop) {
  EventStreamMetrics metrics;
  while (!stop.stop_requested()) {
    metrics.Begun();
    auto ended = runtime_.WatchEvents(
        [&](const cri::ContainerEvent& event) {
          metrics.Heard();
          Heard(event);
        },
        stop);
    MutexLock lock(mutex_);
    events_ = false;
    changed_.notify_all();
    if (!ended && ended.error().Is(Code::kUnimplemented)) return;
    if (!ended && !stop.stop_requested()) metrics.Broke();
    SteadyTime retry = clock_.SteadyNow() + std::chrono::seconds(1);
    while (!stop.stop_requested() && clock_.SteadyNow() < retry) clock_.WaitUntil(mutex_, changed_, retry);
  }
}

SteadyTime Pleg::NextRelist(SteadyTime last) const {
  const bool quiet = events_ && ends_.empty() && clock_.SteadyNow() >= news_until_;
  return last + (quiet ? std::chrono::milliseconds(kSlowRelist) : period_);
}

void Pleg::Run(std::stop_token stop, const std::function<void()>& ready) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  {
    MutexLock lock(mutex_);
    last_good_ = clock_.SteadyNow();
  }
  std::jthread events([this, stop](std::stop_token) { RunEvents(stop); });
  bool told = false, failing = false;
  PlegMetrics metrics;
  while (!stop.stop_requested()) {
    metrics.Begun();
    auto done = Relist(stop);
    if (done) metrics.Finished(clock_.Now());
    if (!done && !failing && !stop.stop_requested()) {
      log::Warn("Container runtime does not answer", {{"err", done.error()}});
    }
    failing = !done;
    if (done && !told) ready();
    told = told || done.has_value();
    MutexLock lock(mutex_);
    const SteadyTime last = clock_.SteadyNow();
    while (!stop.stop_requested() && clock_.SteadyNow() < NextRelist(last)) {
      clock_.WaitUntil(mutex_, changed_, NextRelist(last));
    }
  }
}

}  // namespace keelson::kubelet
