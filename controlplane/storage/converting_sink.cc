#include "controlplane/storage/converting_sink.h"

#include "controlplane/storage/convert.h"

namespace keelson::storage {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr size_t kMaxBatch = 500;  // objects of one call

}  // namespace

bool ConvertingSink::OnEvent(const EventPtr& event) { return Add({event, Error(Code::kInternal, "")}); }

void ConvertingSink::OnEnd(const Error& error) { Add({nullptr, error}); }

bool ConvertingSink::Add(Item item) {
  MutexLock lock(mutex_);
  if (dead_) return false;
  if (queue_.size() >= kMaxQueued) {
    queue_.clear();
    queue_.push_back({nullptr, Error(Code::kGone, "too many events wait for the conversion webhook")});
  } else {
    queue_.push_back(std::move(item));
  }
  if (running_) return true;
  running_ = pool_.Submit([self = shared_from_this()] { self->Drain(); });
  dead_ = !running_;
  return running_;
}

void ConvertingSink::Drain() {
  while (true) {
    std::deque<Item> items;
    {
      MutexLock lock(mutex_);
      if (dead_ || queue_.empty()) {
        queue_.clear();
        running_ = false;
        idle_.notify_all();
        return;
      }
      while (!queue_.empty() && items.size() < kMaxBatch) {
        items.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
    }
    if (Deliver(std::move(items))) continue;
    MutexLock lock(mutex_);
    dead_ = true;
  }
}

bool ConvertingSink::Deliver(std::deque<Item> items) {
  std::vector<ObjectPtr> objects;
  for (const Item& item : items) {
    if (item.event) objects.push_back(item.event->object());
  }
  if (Result<> converted = ConvertAll(objects, info_, {SteadyTime::clock::now() + kPatience, {}});
      !converted) {
    inner_->OnEnd(converted.error());
    return false;
  }
  size_t next = 0;
  for (const Item& item : items) {
    {
      MutexLock lock(mutex_);
      if (dead_) return false;
    }
    if (!item.event) {
      inner_->OnEnd(item.error);
      return false;
    }
    const ObjectPtr& object = objects[next++];
    const EventPtr event = object == item.event->object()
                               ? item.event
                               : std::make_shared<Event>(item.event->type(), object, item.event->revision());
    if (!inner_->OnEvent(event)) return false;
  }
  return true;
}

void ConvertingSink::Flush() {
  MutexLock lock(mutex_);
  while (running_) idle_.wait(mutex_);
}

void ConvertingSink::Close() {
  MutexLock lock(mutex_);
  dead_ = true;
  while (running_) idle_.wait(mutex_);
}

}  // namespace keelson::storage
