#include "controlplane/controllers/common/controller.h"

#include <atomic>
#include <thread>
#include <vector>

namespace keelson::controllers {

Controller::Controller(std::string name, Clock& clock, int workers, client::BackoffOptions backoff)
    : clock_(clock), queue_(std::move(name), clock, backoff), workers_(workers) {}

void Controller::Run(std::stop_token stop) {
  client::RunWorkers(queue_, workers_, stop,
                     [this](const std::string& key, std::stop_token s) { return Reconcile(key, s); });
}

void ParallelFor(size_t count, const std::function<void(size_t)>& call) {
  constexpr size_t kMaxThreads = 8;
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;) call(i);
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(count, kMaxThreads); ++i) threads.emplace_back(work);
  work();
}

bool IsNamespaceTerminating(const Error& error) {
  if (!error.Is(Code::kForbidden) || !error.details()) return false;
  for (const ErrorCause& cause : error.details()->causes) {
    if (cause.reason == "NamespaceTerminating") return true;
  }
  return false;
}

}  // namespace keelson::controllers
