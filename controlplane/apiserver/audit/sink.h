// Where audit events go: a log file that is rotated, or a webhook; at once or in batches.
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
  // The process ends: what fails from now on is not tried again.
  virtual void Stop() {}
};

struct LogOptions {
  std::string path;  // "-": standard output
  int64_t max_bytes = 100 << 20;
  int max_backups = 100;         // 0: all
  std::chrono::hours max_age{};  // of backups; 0: forever
  bool compress = false;         // backups, with gzip
  bool legacy = false;           // lines of text rather than JSON
};
// One event a line. Full files get the time into their names: audit-2026-01-31T23-59-59.123.log.
Result<std::unique_ptr<Sink>> NewLogSink(LogOptions options, Clock& clock = Clock::Real());

// POSTs EventLists. What fails is sent again a few times.
std::unique_ptr<Sink> NewWebhookSink(std::shared_ptr<client::Transport> transport, std::string target,
                                     std::chrono::milliseconds initial_backoff);

// Events that are larger lose the objects that they are about; larger ones still are lost. Batches are cut
// up.
struct TruncateOptions {
  size_t max_event = 102400, max_batch = 10 << 20;  // bytes
};
std::unique_ptr<Sink> NewTruncateSink(std::string plugin, TruncateOptions options,
                                      std::unique_ptr<Sink> inner);

struct BatchOptions {
  size_t buffer = 10000;  // events; what does not fit is dropped and counted
  size_t max_size = 400;
  std::chrono::milliseconds max_wait{30000};  // for a batch to be full
  double qps = 10;                            // batches a second, 0: any number
  int burst = 15;
};
// Hands events on from a thread of its own; never fails, never waits. What is buffered is written at the end.
std::unique_ptr<Sink> NewBatchSink(std::string plugin, BatchOptions options, std::unique_ptr<Sink> inner,
                                   Clock& clock = Clock::Real());

// {"kind":"EventList",...}
std::string EventList(const std::vector<EventJson>& events);

}  // namespace keelson::apiserver::audit
