#include "lib/client/events.h"

#include <deque>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"
#include "lib/client/backoff.h"
#include "lib/client/event_correlator.h"

namespace keelson::client {
namespace {

// The queue's capacity. A component without a node may have an event for every pod of the cluster at once,
// at about 700 bytes each.
constexpr size_t kRoom = 1000, kClusterRoom = 10000;
constexpr size_t kMaxMessage = 1024;  // the API server's limit
constexpr int kMaxTries = 12;
constexpr std::chrono::seconds kRetryDelay{10};

// Cuts at a character's start, so that what is left is still UTF-8.
void Truncate(std::string& message) {
  if (message.size() <= kMaxMessage) return;
  size_t end = kMaxMessage;
  while (end > 0 && (message[end] & 0xc0) == 0x80) --end;
  message.resize(end);
}

}  // namespace

struct EventRecorder::Impl {
  struct Pending {
    corev1::ObjectReference object;
    std::string type, reason, message;
    WallTime at;
  };

  Impl(RestClient a, std::string component, std::string host, Clock& c)
      : api(std::move(a)),
        clock(c),
        room(host.empty() ? kClusterRoom : kRoom),
        correlator(std::move(component), std::move(host)) {}

  RestClient api;
  Clock& clock;
  const size_t room;
  EventCorrelator correlator;  // used by Run()'s thread only
  Mutex mutex;
  CondVar changed;
  std::deque<Pending> queue KEELSON_GUARDED_BY(mutex);
  size_t lost KEELSON_GUARDED_BY(mutex) = 0;  // since the queue was last empty

  // Warnings get a tenth more room: a flood of normal events must not hide them.
  void Put(Pending pending) KEELSON_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (queue.size() >= (pending.type == "Warning" ? room + room / 10 : room)) {
      if (lost++ == 0) log::Warn("Too many events to be sent: some are lost", {{"reason", pending.reason}});
      return;
    }
    queue.push_back(std::move(pending));
    changed.notify_one();
  }

  std::optional<Pending> Take(std::stop_token stop) {
    std::stop_callback wake(stop, [&] {
      MutexLock lock(mutex);
      changed.notify_all();
    });
    MutexLock lock(mutex);
    while (!stop.stop_requested() && queue.empty()) changed.wait(mutex);
    if (stop.stop_requested()) return std::nullopt;
    Pending pending = std::move(queue.front());
    queue.pop_front();
    if (queue.empty() && lost > 0) log::Warn("Events were lost", {{"count", std::exchange(lost, 0)}});
    return pending;
  }

  Result<> SendOnce(const RestClient& client, EventCorrelator::Outcome& outcome) {
    corev1::Event& event = outcome.event;
    const metav1::ObjectMeta& meta = event.metadata();
    if (event.count() > 1) {
      std::string body = fmt::format(R"({{"count":{},"lastTimestamp":"{}","message":{}}})", event.count(),
                                     api::FormatTime(event.last_timestamp()), JsonQuoted(event.message()));
      Result<corev1::Event> patched = client.Patch<corev1::Event>(
          meta.namespace_(), meta.name(), PatchType::kStrategicMerge, std::move(body));
      if (patched) return {};
      if (!patched.error().Is(Code::kNotFound)) return patched.error();
      // Events expire on the server: start the series again.
      event.set_count(1);
      correlator.Renamed(outcome.key, meta.name());
    }
    Result<corev1::Event> created = client.Create(event);
    if (!created) return created.error();
    return {};
  }

  void Send(const RestClient& client, Pending pending, std::stop_token stop) {
    std::optional<EventCorrelator::Outcome> outcome = correlator.Correlate(
        pending.object, pending.type, pending.reason, std::move(pending.message), pending.at);
    if (!outcome) return;
    for (int i = 1;; ++i) {
      Result<> sent = SendOnce(client, *outcome);
      if (sent || stop.stop_requested()) return;
      const Error& error = sent.error();
      bool passing =
          error.Is(Code::kUnavailable) || error.Is(Code::kTimeout) || error.Is(Code::kTooManyRequests);
      if (!passing || i == kMaxTries) {
        // A namespace that is being deleted accepts no events; that is expected.
        log::Level level =
            error.Is(Code::kForbidden) || error.Is(Code::kNotFound) ? log::Level::kDebug : log::Level::kWarn;
        log::Write(level, "Event not recorded", {{"reason", outcome->event.reason()}, {"err", error}});
        return;
      }
      if (!SleepFor(clock, kRetryDelay, stop)) return;
    }
  }
};

EventRecorder::EventRecorder(RestClient api, std::string component, std::string host, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(api), std::move(component), std::move(host), clock)) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::Record(const google::protobuf::Message& object, std::string_view type,
                           std::string_view reason, std::string message) {
  const metav1::ObjectMeta& meta = api::Meta(object);
  api::GroupVersionKind gvk = api::GvkOf(object.GetDescriptor());
  corev1::ObjectReference reference;
  reference.set_kind(gvk.kind);
  reference.set_api_version(gvk.ApiVersion());
  if (!meta.namespace_().empty()) reference.set_namespace_(meta.namespace_());
  reference.set_name(meta.name());
  reference.set_uid(meta.uid());
  if (!meta.resource_version().empty()) reference.set_resource_version(meta.resource_version());
  Record(reference, type, reason, std::move(message));
}

void EventRecorder::Record(const corev1::ObjectReference& object, std::string_view type,
                           std::string_view reason, std::string message) {
  Truncate(message);
  impl_->Put({object, std::string(type), std::string(reason), std::move(message), impl_->clock.Now()});
}

void EventRecorder::Run(std::stop_token stop) {
  const RestClient client = impl_->api.With(stop);
  while (std::optional<Impl::Pending> pending = impl_->Take(stop)) {
    impl_->Send(client, std::move(*pending), stop);
  }
}

}  // namespace keelson::client
