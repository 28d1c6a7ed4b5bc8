#include "lib/client/custom/custom_informers.h"

#include <atomic>
#include <thread>

#include "lib/base/mutex.h"

namespace keelson::client {

CustomInformers::CustomInformers(RestClient api, Clock& clock) : api_(std::move(api)), clock_(clock) {}

Informer<CustomObject>& CustomInformers::Get(const api::ResourceInfo& row, const ListOptions& selection) {
  for (const One& one : informers_) {
    if (one.row == &row && one.labels == selection.label_selector && one.fields == selection.field_selector) {
      return *one.informer;
    }
  }
  auto informer = std::make_unique<Informer<CustomObject>>(api_, row, selection, "", clock_);
  informers_.push_back({&row, selection.label_selector, selection.field_selector, std::move(informer)});
  return *informers_.back().informer;
}

Result<> CustomInformers::Run(std::stop_token stop, const std::function<void()>& ready) {
  std::atomic<size_t> missing = informers_.size();
  auto one_synced = [&] {
    if (missing.fetch_sub(1) == 1 && ready) ready();
  };
  if (informers_.empty() && ready) ready();
  {
    std::vector<std::jthread> threads;
    for (const One& one : informers_) {
      threads.emplace_back([&, informer = one.informer.get()] { informer->Run(stop, one_synced); });
    }
  }
  // Without any informer this service still runs until the stop.
  Mutex mutex;
  CondVar ended;
  std::stop_callback wake(stop, [&] {
    MutexLock lock(mutex);
    ended.notify_all();
  });
  MutexLock lock(mutex);
  while (!stop.stop_requested()) ended.wait(mutex);
  return {};
}

}  // namespace keelson::client
