#include "controlplane/etcd/compactor.h"

#include <string>

#include "lib/base/log.h"
#include "lib/base/mutex.h"

namespace keelson::etcd {

Result<> Compactor::RunOnce(const Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(
      TxnResult round, client_.PutIfVersion("compact_rev_key", std::to_string(revision_), version_, limits));
  int64_t previous = revision_;
  revision_ = round.revision;
  if (!round.succeeded) {
    // Another server did this round.
    version_ = round.current ? round.current->version : 0;
    return {};
  }
  ++version_;
  if (previous == 0) return {};
  Result<> compacted = client_.Compact(previous, limits);
  // Compacted further by somebody else: also fine.
  if (!compacted && compacted.error().Is(Code::kGone)) return {};
  return compacted;
}

void Compactor::Run(std::chrono::seconds period, Clock& clock, std::stop_token stop) {
  Mutex mutex;
  CondVar wake;
  std::stop_callback on_stop(stop, [&] {
    MutexLock lock(mutex);
    wake.notify_all();
  });
  while (!stop.stop_requested()) {
    SteadyTime next = clock.SteadyNow() + period;
    {
      MutexLock lock(mutex);
      while (!stop.stop_requested() && clock.SteadyNow() < next) clock.WaitUntil(mutex, wake, next);
    }
    if (stop.stop_requested()) return;
    Limits limits;
    limits.stop = stop;
    if (Result<> done = RunOnce(limits); !done && !done.error().Is(Code::kCancelled)) {
      log::Warn("Cannot compact etcd", {{"err", done.error()}});
    }
  }
}

}  // namespace keelson::etcd
