#include "lib/base/service_group.h"

#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/base/signals.h"

namespace keelson {
namespace {

struct State {
  Mutex mutex;
  CondVar changed;
  std::map<std::string, bool> ready KEELSON_GUARDED_BY(mutex);
  std::optional<Error> failure KEELSON_GUARDED_BY(mutex);
  bool ending KEELSON_GUARDED_BY(mutex) = false;
};

}  // namespace

void ServiceGroup::Add(Service service) { services_.push_back(std::move(service)); }

Result<> ServiceGroup::Run(std::stop_token stop) {
  State state;
  std::vector<std::jthread> threads;
  std::stop_callback on_stop(stop, [&] {
    MutexLock lock(state.mutex);
    state.ending = true;
    state.changed.notify_all();
  });
  auto ready_or_ending = [&](const Service& service) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
    MutexLock lock(state.mutex);
    for (;;) {
      if (state.ending) return false;
      bool all = true;
      for (const std::string& need : service.needs) all = all && state.ready[need];
      if (all) return true;
      state.changed.wait(state.mutex);
    }
  };
  for (const Service& service : services_) {
    if (!ready_or_ending(service)) break;
    log::Debug("Starting service", {{"service", service.name}});
    threads.emplace_back([&state, &service](std::stop_token own) {
      Result<> result = service.run(own, [&] {
        MutexLock lock(state.mutex);
        state.ready[service.name] = true;
        state.changed.notify_all();
      });
      MutexLock lock(state.mutex);
      if (!own.stop_requested() && !state.failure) {
        state.failure = result ? Error(Code::kInternal, service.name + ": ended on its own")
                               : result.error().Wrap(service.name);
      }
      state.ending = true;
      state.changed.notify_all();
    });
  }
  {
    MutexLock lock(state.mutex);
    while (!state.ending) state.changed.wait(state.mutex);
  }
  while (!threads.empty()) {
    threads.back().request_stop();
    threads.back().join();
    threads.pop_back();
  }
  MutexLock lock(state.mutex);
  if (state.failure) return *state.failure;
  return {};
}

int ServiceGroup::RunUntilSignal() {
  BlockSignals();
  std::stop_source source;
  Result<> result;
  {
    StopOnSignal on_signal([&source] { source.request_stop(); });
    result = Run(source.get_token());
  }
  if (!result) log::Error("Stopping after a failure", {{"err", result.error()}});
  return result ? 0 : 1;
}

}  // namespace keelson
