#include "controlplane/apiserver/reflector.h"

#include <set>

#include "lib/base/log.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

struct Reflector::Signal {
  Mutex mutex;
  CondVar changed;
  bool ended KEELSON_GUARDED_BY(mutex) = false;
};

class Reflector::Sink : public storage::WatchSink {
 public:
  Sink(const Subscription& subscription, std::shared_ptr<Signal> signal)
      : subscription_(subscription), signal_(std::move(signal)) {}

  bool OnEvent(const storage::EventPtr& event) override {
    if (event->type() == storage::Event::Type::kBookmark) return true;
    const storage::ObjectPtr& object = event->object();
    MutexLock lock(mutex_);
    if (event->type() == storage::Event::Type::kDeleted) {
      keys_.erase(object->key());
      subscription_.remove(object->key());
    } else {
      keys_.insert(object->key());
      if (initial_) fresh_.insert(object->key());
      subscription_.put(object);
    }
    return true;
  }

  void OnEnd(const Error& error) override {
    log::Warn("Watch of the cache ended", {{"resource", subscription_.info->resource}, {"err", error}});
    ended_ = true;
    MutexLock lock(signal_->mutex);
    signal_->ended = true;
    signal_->changed.notify_all();
  }

  // Wraps Store::Watch(), which delivers the current state first: known keys that are missing there are
  // removed.
  void BeginInitial() {
    MutexLock lock(mutex_);
    ended_ = false;
    initial_ = true;
    fresh_.clear();
  }
  void EndInitial() {
    MutexLock lock(mutex_);
    initial_ = false;
    for (auto it = keys_.begin(); it != keys_.end();) {
      if (fresh_.count(*it)) {
        ++it;
        continue;
      }
      subscription_.remove(*it);
      it = keys_.erase(it);
    }
    fresh_.clear();
  }
  bool ended() const { return ended_; }

 private:
  const Subscription& subscription_;
  const std::shared_ptr<Signal> signal_;
  std::atomic<bool> ended_{true};
  Mutex mutex_;
  bool initial_ KEELSON_GUARDED_BY(mutex_) = false;
  std::set<std::string> keys_ KEELSON_GUARDED_BY(mutex_), fresh_ KEELSON_GUARDED_BY(mutex_);
};

Reflector::Reflector(storage::Store& store) : store_(store), signal_(std::make_shared<Signal>()) {}

Reflector::~Reflector() { handles_.clear(); }

void Reflector::Add(Subscription subscription) { subscriptions_.push_back(std::move(subscription)); }

Result<> Reflector::Subscribe(size_t index) {
  const std::shared_ptr<Sink>& sink = sinks_[index];
  handles_[index].reset();
  sink->BeginInitial();
  storage::WatchRequest request;
  request.initial_events = true;
  KEELSON_ASSIGN_OR_RETURN(handles_[index], store_.Watch(*subscriptions_[index].info, request, sink, {}));
  sink->EndInitial();
  return {};
}

Result<> Reflector::Run(std::stop_token stop, const std::function<void()>& ready) {
  handles_.resize(subscriptions_.size());
  for (const Subscription& subscription : subscriptions_) {
    sinks_.push_back(std::make_shared<Sink>(subscription, signal_));
  }
  bool said_ready = false;
  while (!stop.stop_requested()) {
    bool all = true;
    for (size_t i = 0; i < sinks_.size(); ++i) {
      if (!sinks_[i]->ended()) continue;
      Result<> subscribed = Subscribe(i);
      if (subscribed) continue;
      all = false;
      log::Warn("Cannot follow the cache",
                {{"resource", subscriptions_[i].info->resource}, {"err", subscribed.error()}});
    }
    if (all && !std::exchange(said_ready, true)) ready();
    MutexLock lock(signal_->mutex);
    auto retry = std::chrono::milliseconds(all ? 60000 : 500);
    signal_->changed.wait_for(signal_->mutex, stop, retry,
                              [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return signal_->ended; });
    signal_->ended = false;
  }
  handles_.clear();
  return {};
}

}  // namespace keelson::apiserver
