#include "lib/client/workqueue.h"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/metrics/metrics.h"

namespace keelson::client {
namespace {

double Seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

// Queue metrics under client-go's names.
struct QueueMetrics {
  explicit QueueMetrics(const std::string& name)
      : adds(metrics::Counter("workqueue_adds_total", "Total number of adds handled by workqueue", {"name"})
                 .With({name})),
        retries(metrics::Counter("workqueue_retries_total", "Total number of retries handled by workqueue",
                                 {"name"})
                    .With({name})),
        waited(metrics::Histograms("workqueue_queue_duration_seconds",
                                   "How long in seconds an item stays in workqueue before being requested.",
                                   metrics::ExponentialBuckets(10e-9, 10, 10), {"name"})
                   .HistogramWith({name})),
        worked(metrics::Histograms("workqueue_work_duration_seconds",
                                   "How long in seconds processing an item from workqueue takes.",
                                   metrics::ExponentialBuckets(10e-9, 10, 10), {"name"})
                   .HistogramWith({name})) {}
  metrics::Value &adds, &retries;
  metrics::Histogram &waited, &worked;
};

// The state of a queue at this moment.
struct Standing {
  size_t depth = 0;
  std::chrono::nanoseconds unfinished{0}, longest{0};
};

// All live queues, which are measured when metrics are collected.
class LiveQueues {
 public:
  static LiveQueues& Get() {
    static LiveQueues* all = new LiveQueues;
    return *all;
  }
  void Add(const void* queue, const std::string& name, std::function<Standing()> look) {
    MutexLock lock(mutex_);
    if (!std::exchange(collected_, true)) metrics::OnCollect([this] { Collect(); });
    queues_[queue] = {name, std::move(look)};
  }
  void Remove(const void* queue) {
    MutexLock lock(mutex_);
    queues_.erase(queue);
  }

 private:
  struct Queue {
    std::string name;
    std::function<Standing()> look;
  };
  void Collect() {
    metrics::Family& depth = metrics::Gauge("workqueue_depth", "Current depth of workqueue", {"name"});
    metrics::Family& unfinished =
        metrics::Gauge("workqueue_unfinished_work_seconds",
                       "How many seconds of work has done that is in progress and hasn't been observed by "
                       "work_duration. Large values indicate stuck threads. One can deduce the number of "
                       "stuck threads by observing the rate at which this increases.",
                       {"name"});
    metrics::Family& longest = metrics::Gauge(
        "workqueue_longest_running_processor_seconds",
        "How many seconds has the longest running processor for workqueue been running.", {"name"});
    std::map<std::string, Standing> by_name;
    MutexLock lock(mutex_);
    for (const auto& [key, queue] : queues_) {
      const Standing one = queue.look();
      Standing& sum = by_name[queue.name];
      sum.depth += one.depth;
      sum.unfinished += one.unfinished;
      sum.longest = std::max(sum.longest, one.longest);
    }
    for (const auto& [name, standing] : by_name) {
      depth.With({name}).Set(static_cast<double>(standing.depth));
      unfinished.With({name}).Set(Seconds(standing.unfinished));
      longest.With({name}).Set(Seconds(standing.longest));
    }
  }

  Mutex mutex_;
  bool collected_ KEELSON_GUARDED_BY(mutex_) = false;
  std::map<const void*, Queue> queues_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

// Besides waiting for its time, a key is in at most one of these states:
//
//   Add          Get                Done
//   ---> dirty ------> processing ------>  (gone)
//                        | Add                ^
//                        v                    |
//                      processing + dirty ----+--> dirty, queued again
struct WorkQueue::Impl {
  Impl(std::string queue_name, Clock& c, BackoffOptions b)
      : name(std::move(queue_name)), clock(c), backoff(b), told(name) {
    LiveQueues::Get().Add(this, name, [this] { return Look(); });
  }
  ~Impl() { LiveQueues::Get().Remove(this); }

  const std::string name;
  Clock& clock;
  const BackoffOptions backoff;
  const QueueMetrics told;

  Mutex mutex;
  CondVar changed;
  std::deque<std::string> ready KEELSON_GUARDED_BY(mutex);
  std::unordered_map<std::string, SteadyTime> dirty KEELSON_GUARDED_BY(mutex),  // since when
      processing KEELSON_GUARDED_BY(mutex);
  std::multimap<SteadyTime, std::string> waiting KEELSON_GUARDED_BY(mutex);
  std::unordered_map<std::string, std::multimap<SteadyTime, std::string>::iterator> waiting_by_key
      KEELSON_GUARDED_BY(mutex);
  std::unordered_map<std::string, int> failures KEELSON_GUARDED_BY(mutex);

  void AddLocked(const std::string& key) KEELSON_REQUIRES(mutex) {
    if (!dirty.try_emplace(key, clock.SteadyNow()).second) return;
    told.adds.Increment();
    if (processing.count(key)) return;
    ready.push_back(key);
    changed.notify_one();
  }

  // Moves keys that are due to `ready`; returns when the next one is due.
  SteadyTime PromoteLocked() KEELSON_REQUIRES(mutex) {
    SteadyTime now = clock.SteadyNow();
    while (!waiting.empty()) {
      auto first = waiting.begin();
      if (first->first > now) return first->first;
      std::string key = std::move(first->second);
      waiting_by_key.erase(key);
      waiting.erase(first);
      AddLocked(key);
    }
    return SteadyTime::max();
  }

  Standing Look() KEELSON_EXCLUDES(mutex) {
    const SteadyTime now = clock.SteadyNow();
    Standing standing;
    MutexLock lock(mutex);
    standing.depth = dirty.size();
    for (const auto& [key, since] : processing) {
      standing.unfinished += now - since;
      standing.longest = std::max<std::chrono::nanoseconds>(standing.longest, now - since);
    }
    return standing;
  }

  void AddAfterLocked(const std::string& key, std::chrono::nanoseconds delay) KEELSON_REQUIRES(mutex) {
    told.retries.Increment();
    if (delay.count() <= 0) return AddLocked(key);
    SteadyTime at = clock.SteadyNow() + delay;
    auto it = waiting_by_key.find(key);
    if (it != waiting_by_key.end()) {
      if (it->second->first <= at) return;
      waiting.erase(it->second);
      it->second = waiting.emplace(at, key);
    } else {
      waiting_by_key.emplace(key, waiting.emplace(at, key));
    }
    changed.notify_one();  // the waiter's deadline may now be too late
  }
};

WorkQueue::WorkQueue(std::string name, Clock& clock, BackoffOptions backoff)
    : impl_(std::make_unique<Impl>(std::move(name), clock, backoff)) {}

WorkQueue::~WorkQueue() = default;

void WorkQueue::Add(std::string_view key) {
  MutexLock lock(impl_->mutex);
  impl_->AddLocked(std::string(key));
}

void WorkQueue::AddAfter(std::string_view key, std::chrono::nanoseconds delay) {
  MutexLock lock(impl_->mutex);
  impl_->AddAfterLocked(std::string(key), delay);
}

void WorkQueue::AddRateLimited(std::string_view key) {
  MutexLock lock(impl_->mutex);
  int failures = impl_->failures[std::string(key)]++;
  std::chrono::milliseconds delay = impl_->backoff.base;
  for (int i = 0; i < failures && delay < impl_->backoff.max; ++i) delay *= 2;
  impl_->AddAfterLocked(std::string(key), std::min(delay, impl_->backoff.max));
}

void WorkQueue::Forget(std::string_view key) {
  MutexLock lock(impl_->mutex);
  impl_->failures.erase(std::string(key));
}

int WorkQueue::Failures(std::string_view key) const {
  MutexLock lock(impl_->mutex);
  auto it = impl_->failures.find(std::string(key));
  return it == impl_->failures.end() ? 0 : it->second;
}

std::optional<std::string> WorkQueue::Get(std::stop_token stop) {
  Impl& q = *impl_;
  std::stop_callback wake(stop, [&q] {
    MutexLock lock(q.mutex);
    q.changed.notify_all();
  });
  MutexLock lock(q.mutex);
  for (;;) {
    if (stop.stop_requested()) return std::nullopt;
    SteadyTime next = q.PromoteLocked();
    if (!q.ready.empty()) {
      std::string key = std::move(q.ready.front());
      q.ready.pop_front();
      const SteadyTime now = q.clock.SteadyNow();
      auto dirty = q.dirty.find(key);
      q.told.waited.Observe(Seconds(now - dirty->second));
      q.dirty.erase(dirty);
      q.processing[key] = now;
      return key;
    }
    q.clock.WaitUntil(q.mutex, q.changed, next);
  }
}

void WorkQueue::Done(std::string_view key) {
  MutexLock lock(impl_->mutex);
  std::string owned(key);
  auto it = impl_->processing.find(owned);
  if (it != impl_->processing.end()) {
    impl_->told.worked.Observe(Seconds(impl_->clock.SteadyNow() - it->second));
    impl_->processing.erase(it);
  }
  if (!impl_->dirty.count(owned)) return;
  impl_->ready.push_back(std::move(owned));
  impl_->changed.notify_one();
}

size_t WorkQueue::size() const {
  MutexLock lock(impl_->mutex);
  impl_->PromoteLocked();
  return impl_->ready.size();
}

const std::string& WorkQueue::name() const { return impl_->name; }

namespace {

void ProcessOne(WorkQueue& queue, const std::string& key, std::stop_token stop,
                const std::function<Result<Requeue>(const std::string&, std::stop_token)>& reconcile) {
  Result<Requeue> result = reconcile(key, stop);
  if (!result) {
    if (stop.stop_requested()) return;
    // A conflict only means that the local store is behind: the retry will see the newer object.
    log::Level level = result.error().Is(Code::kConflict) ? log::Level::kDebug : log::Level::kWarn;
    log::Write(level, "Reconcile failed, will be retried",
               {{"queue", queue.name()}, {"key", key}, {"err", result.error()}});
    queue.AddRateLimited(key);
    return;
  }
  queue.Forget(key);
  if (result->after) queue.AddAfter(key, *result->after);
}

}  // namespace

void RunWorkers(
    WorkQueue& queue, int workers, std::stop_token stop,
    const std::function<Result<Requeue>(const std::string& key, std::stop_token stop)>& reconcile) {
  // Most queues are idle most of the time: start another thread only when the last one that waited has
  // taken a key. None starts after `stop`, so the first thread, which joins them, misses none.
  Mutex mutex;
  int waiting = 0, started = 1;
  std::function<void()> work;
  std::vector<std::jthread> threads;
  work = [&] {
    for (;;) {
      {
        MutexLock lock(mutex);
        ++waiting;
      }
      std::optional<std::string> key = queue.Get(stop);
      {
        MutexLock lock(mutex);
        if (!key) return;
        if (--waiting == 0 && started < workers && !stop.stop_requested()) {
          ++started;
          threads.emplace_back(work);
        }
      }
      ProcessOne(queue, *key, stop, reconcile);
      queue.Done(*key);
    }
  };
  work();
}

}  // namespace keelson::client
