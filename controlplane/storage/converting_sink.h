// A watch on a custom resource whose objects a webhook converts: the storage's threads may not wait for it, so that
// events pass through a queue.
#pragma once

#include <deque>
#include <memory>

#include "controlplane/storage/object.h"
#include "lib/base/mutex.h"
#include "lib/base/worker_pool.h"

namespace keelson::storage {

class ConvertingSink : public WatchSink, public std::enable_shared_from_this<ConvertingSink> {
 public:
  // `inner` gets the events in the version of `info`, in order, from threads of `pool`. A failed conversion ends the
  // watch, as does a queue of more than kMaxQueued events.
  ConvertingSink(const api::ResourceInfo& info, std::shared_ptr<WatchSink> inner, WorkerPool& pool)
      : info_(info), inner_(std::move(inner)), pool_(pool) {}

  bool OnEvent(const EventPtr& event) override;
  void OnEnd(const Error& error) override;
  // Waits until everything that has come is delivered.
  void Flush();
  // No call to the inner sink is under way, or comes, after this returns.
  void Close();

  static constexpr size_t kMaxQueued = 10'000;

 private:
  struct Item {
    EventPtr event;  // null: the end
    Error error{Code::kInternal, ""};
  };
  bool Add(Item item);
  void Drain();
  // False: nothing more is delivered.
  bool Deliver(std::deque<Item> items);

  const api::ResourceInfo& info_;
  const std::shared_ptr<WatchSink> inner_;
  WorkerPool& pool_;
  Mutex mutex_;
  CondVar idle_;
  bool running_ KEELSON_GUARDED_BY(mutex_) = false, dead_ KEELSON_GUARDED_BY(mutex_) = false;
  std::deque<Item> queue_ KEELSON_GUARDED_BY(mutex_);
};

// The handle of such a watch: ends the inner watch, then the sink.
class ConvertingHandle : public WatchHandle {
 public:
  ConvertingHandle(std::unique_ptr<WatchHandle> inner, std::shared_ptr<ConvertingSink> sink)
      : inner_(std::move(inner)), sink_(std::move(sink)) {}
  ~ConvertingHandle() override {
    inner_.reset();
    sink_->Close();
  }
  void RequestBookmark() override { inner_->RequestBookmark(); }

 private:
  std::unique_ptr<WatchHandle> inner_;
  const std::shared_ptr<ConvertingSink> sink_;
};

}  // namespace keelson::storage
