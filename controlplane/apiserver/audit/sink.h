// Destinations of audit events: a rotated log file or a webhook; blocking or batched.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/transport.h"

namespace keelson::apiserver::audit {

using EventJson = std::shared_ptr<const std::string>;

class Sink {  // thread safe
 public:
  virtual ~Sink() = default;
  virtual Result<> Write(const std::vector<EventJson>& events) = 0;
  // Called at shutdown: failed events are no longer retried.
  virtual void Stop() {}
};

struct LogOptions {
  std::string path;  // "-": standard output
  int64_t max_bytes = 100 << 20;
  int max_backups = 100;         // 0: all
  std::chrono::hours max_age{};  // of backups; 0: keep forever
  bool compress = false;         // gzip backups
  bool legacy = false;           // legacy text format instead of JSON
};
// Writes one event per line. A full file is renamed with a timestamp: audit-2026-01-31T23-59-59.123.log.
Result<std::unique_ptr<Sink>> NewLogSink(LogOptions options, Clock& clock = Clock::Real());

// POSTs EventLists, with a few retries.
std::unique_ptr<Sink> NewWebhookSink(std::shared_ptr<client::Transport> transport, std::string target,
                                     std::chrono::milliseconds initial_backoff);

// Drops the request and response objects of larger events, and events that are still too large. Splits
// batches.
struct TruncateOptions {
  size_t max_event = 102400, max_batch = 10 << 20;  // bytes
};
std::unique_ptr<Sink> NewTruncateSink(std::string plugin, TruncateOptions options,
                                      std::unique_ptr<Sink> inner);

struct BatchOptions {
  size_t buffer = 10000;  // events; further ones are dropped and counted
  size_t max_size = 400;
  std::chrono::milliseconds max_wait{30000};  // before an incomplete batch is sent
  double qps = 10;                            // batches per second; 0: unlimited
  int burst = 15;
};
// Sends batches on its own thread. Write() neither fails nor blocks. Stop() flushes the buffer.
std::unique_ptr<Sink> NewBatchSink(std::string plugin, BatchOptions options, std::unique_ptr<Sink> inner,
                                   Clock& clock = Clock::Real());

// {"kind":"EventList",...}
std::string EventList(const std::vector<EventJson>& events);

}  // namespace keelson::apiserver::audit
