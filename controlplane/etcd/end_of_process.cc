#include "controlplane/etcd/end_of_process.h"

#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/base/pause.h"

namespace keelson::etcd {
namespace {

// An etcd that writes to a busy disk may take a second.
constexpr std::chrono::seconds kPatience{3}, kPeriod{1};

}  // namespace

void CloseWhenSilent(Client& client, const std::stop_token& ending, const std::stop_token& over) {
  Mutex mutex;
  CondVar changed;
  std::stop_callback wake(ending, [&] {
    MutexLock lock(mutex);
    changed.notify_all();
  });
  {
    MutexLock lock(mutex);
    changed.wait(mutex, over, [&] { return ending.stop_requested(); });
  }
  while (!over.stop_requested()) {
    const Result<int64_t> answer = client.Revision({std::chrono::steady_clock::now() + kPatience, over});
    if (!answer && !over.stop_requested()) {
      log::Warn("etcd does not answer, and the process ends: what waits for etcd is given up",
                {{"err", answer.error()}});
      return client.Close();
    }
    Pause(Clock::Real(), kPeriod, over);
  }
}

}  // namespace keelson::etcd
