#include <algorithm>
#include <deque>
#include <optional>
#include <thread>

#include "controlplane/apiserver/audit/sink.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver::audit {
namespace {

constexpr int kAttempts = 5;
constexpr std::chrono::seconds kRequestTimeout{10};
// The time limit for the flush at shutdown.
constexpr std::chrono::seconds kParting{5};

metrics::Family& Errors() {
  static metrics::Family& family =
      metrics::Counter("apiserver_audit_error_total", "Audit events that were lost, by backend.", {"plugin"});
  return family;
}

class BatchSink : public Sink {
 public:
  BatchSink(std::string plugin, BatchOptions options, std::unique_ptr<Sink> inner, Clock& clock)
      : plugin_(std::move(plugin)),
        options_(options),
        inner_(std::move(inner)),
        clock_(clock),
        tokens_(options.burst),
        thread_([this](std::stop_token stop) { Run(stop); }) {}
  ~BatchSink() override {
    inner_->Stop();
    thread_.request_stop();
    {
      MutexLock lock(mutex_);
      changed_.notify_all();
    }
    thread_.join();
  }

  Result<> Write(const std::vector<EventJson>& events) override {
    MutexLock lock(mutex_);
    for (const EventJson& event : events) {
      if (queue_.size() >= options_.buffer) {
        Errors().With({plugin_}).Increment();
        continue;
      }
      queue_.push_back({event, clock_.SteadyNow()});
    }
    if (queue_.size() >= options_.max_size || queue_.size() == events.size()) changed_.notify_all();
    return {};
  }

 private:
  struct Waiting {
    EventJson event;
    SteadyTime since;
  };

  // The next batch: full, old enough, or the last one. Empty at the end.
  std::vector<EventJson> Next(const std::stop_token& stop) {
    std::vector<EventJson> batch;
    MutexLock lock(mutex_);
    while (!stop.stop_requested() && queue_.size() < options_.max_size) {
      SteadyTime due = queue_.empty() ? clock_.SteadyNow() + std::chrono::hours(1)
                                      : queue_.front().since + options_.max_wait;
      if (!queue_.empty() && clock_.SteadyNow() >= due) break;
      clock_.WaitUntil(mutex_, changed_, due);
    }
    while (!queue_.empty() && batch.size() < options_.max_size) {
      batch.push_back(std::move(queue_.front().event));
      queue_.pop_front();
    }
    return batch;
  }

  // Waits for the rate limit.
  void Throttle(const std::stop_token& stop) {
    if (options_.qps <= 0) return;
    auto refill = [this] {
      SteadyTime now = clock_.SteadyNow();
      tokens_ = std::min<double>(
          options_.burst, tokens_ + std::chrono::duration<double>(now - filled_).count() * options_.qps);
      filled_ = now;
    };
    refill();
    while (tokens_ < 1 && !stop.stop_requested()) {
      MutexLock lock(mutex_);
      auto wait = std::chrono::duration<double>((1 - tokens_) / options_.qps);
      clock_.WaitUntil(mutex_, changed_, filled_ + std::chrono::ceil<std::chrono::milliseconds>(wait));
      refill();
    }
    tokens_ -= 1;
  }

  void Run(std::stop_token stop) {
    filled_ = clock_.SteadyNow();
    while (true) {
      std::vector<EventJson> batch = Next(stop);
      if (batch.empty()) {
        if (stop.stop_requested()) return;
        continue;
      }
      Throttle(stop);
      if (Result<> written = inner_->Write(batch); !written) {
        Errors().With({plugin_}).Add(static_cast<double>(batch.size()));
        log::Error(
            "Audit events are lost",
            {{"plugin", plugin_}, {"events", static_cast<int64_t>(batch.size())}, {"err", written.error()}});
      }
    }
  }

  const std::string plugin_;
  const BatchOptions options_;
  const std::unique_ptr<Sink> inner_;
  Clock& clock_;
  double tokens_;
  SteadyTime filled_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Waiting> queue_ KEELSON_GUARDED_BY(mutex_);
  std::jthread thread_;
};

class WebhookSink : public Sink {
 public:
  WebhookSink(std::shared_ptr<client::Transport> transport, std::string target,
              std::chrono::milliseconds initial_backoff)
      : transport_(std::move(transport)), target_(std::move(target)), initial_backoff_(initial_backoff) {}
  ~WebhookSink() override { stop_.request_stop(); }

  void Stop() override {
    MutexLock lock(mutex_);
    if (!last_) last_ = SteadyTime::clock::now() + kParting;
    stopping_.request_stop();
  }

  Result<> Write(const std::vector<EventJson>& events) override {
    client::ApiRequest request;
    request.method = "POST";
    request.target = target_;
    request.content_type = request.accept = "application/json";
    request.body = EventList(events);
    std::chrono::milliseconds backoff = initial_backoff_;
    for (int attempt = 1;; ++attempt) {
      const std::chrono::milliseconds time = TimeLeft();
      if (time.count() <= 0) return Error(Code::kTimeout, "the webhook has not answered before the end");
      Result<client::ApiResponse> reply = transport_->Do(request, time, stop_.get_token());
      if (reply && reply->status / 100 == 2) return {};
      Error error = reply ? Error(Code::kUnavailable, "the webhook answered " + std::to_string(reply->status))
                          : reply.error();
      // This error is permanent: do not retry.
      bool hopeless = reply && reply->status / 100 == 4 && reply->status != 429;
      if (hopeless || attempt == kAttempts) return error;
      Mutex mutex;
      CondVar never;
      MutexLock lock(mutex);
      never.wait_for(mutex, stopping_.get_token(), backoff, [] { return false; });
      if (stopping_.stop_requested()) return error;
      backoff = backoff * 3 / 2;
    }
  }

 private:
  // The time limit of one request, and of the flush at shutdown.
  std::chrono::milliseconds TimeLeft() {
    MutexLock lock(mutex_);
    if (!last_) return kRequestTimeout;
    return std::chrono::duration_cast<std::chrono::milliseconds>(*last_ - SteadyTime::clock::now());
  }

  const std::shared_ptr<client::Transport> transport_;
  const std::string target_;
  const std::chrono::milliseconds initial_backoff_;
  std::stop_source stop_, stopping_;
  Mutex mutex_;
  std::optional<SteadyTime> last_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

std::string EventList(const std::vector<EventJson>& events) {
  std::string out = R"({"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[)";
  for (const EventJson& event : events) {
    if (&event != &events.front()) out += ',';
    out += *event;
  }
  out += "]}";
  return out;
}

std::unique_ptr<Sink> NewWebhookSink(std::shared_ptr<client::Transport> transport, std::string target,
                                     std::chrono::milliseconds initial_backoff) {
  return std::make_unique<WebhookSink>(std::move(transport), std::move(target), initial_backoff);
}

std::unique_ptr<Sink> NewBatchSink(std::string plugin, BatchOptions options, std::unique_ptr<Sink> inner,
                                   Clock& clock) {
  return std::make_unique<BatchSink>(std::move(plugin), options, std::move(inner), clock);
}

}  // namespace keelson::apiserver::audit
