#include "controlplane/apiserver/handlers/watch.h"

#include <atomic>
#include <map>
#include <random>
#include <unordered_map>

#include "controlplane/apiserver/endpoints/request_metrics.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/endpoints/table.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/http/streaming/websocket_writer.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

// The limit of unsent bytes per watch; beyond it the watch ends, and the client lists again.
constexpr size_t kMaxQueued = 16u << 20;
constexpr std::chrono::seconds kMaxTimeout{std::chrono::hours(24 * 365)};
// A bookmark is sent before the end, so that the next watch can resume there.
constexpr std::chrono::seconds kFarewell{2};
constexpr std::chrono::seconds kIdle{60};

metrics::Family& events_total =
    metrics::Counter("apiserver_watch_events_total", "Number of events sent in watch clients",
                     {"group", "version", "resource"});
metrics::Family& event_sizes =
    metrics::Histograms("apiserver_watch_events_sizes", "Watch event size distribution in bytes",
                        metrics::ExponentialBuckets(1024, 2, 8), {"group", "version", "resource"});
metrics::Family& list_seconds = metrics::Histograms(
    "apiserver_watch_list_duration_seconds",
    "Response latency distribution in seconds for watch list requests broken by group, version, resource and "
    "scope.",
    {0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60},
    {"group", "version", "resource", "scope"});
metrics::Family& terminated_total = metrics::Counter(
    "apiserver_terminated_watchers_total",
    "Counter of watchers closed due to unresponsiveness broken by resource type.", {"group", "resource"});

// Watch metrics of a resource.
struct WatchMeters {
  explicit WatchMeters(const RequestInfo& info)
      : events(events_total.With({info.group, info.version, info.resource})),
        sizes(event_sizes.HistogramWith({info.group, info.version, info.resource})) {}
  metrics::Value& events;
  metrics::Histogram& sizes;
};

// Without timeoutSeconds: a random time, so that watches do not end together.
std::chrono::seconds TimeoutOf(const registry::ListOptions& options, std::chrono::seconds least) {
  if (int64_t seconds = options.timeout_seconds.value_or(0); seconds != 0) {
    return std::chrono::seconds(std::clamp<int64_t>(seconds, 0, kMaxTimeout.count()));
  }
  thread_local std::minstd_rand random(std::random_device{}());
  return least + std::chrono::seconds(random() % static_cast<uint32_t>(std::max<int64_t>(1, least.count())));
}

std::string ContentType(const Output& output) {
  return output.encoding == Encoding::kProtobuf ? output.ContentType() + ";stream=watch" : "application/json";
}

}  // namespace

// Open sessions. Shared with connection callbacks, which may outlive the manager. What ends is named, so that the end of
// thousands of watches at once costs no search through all of them for each.
struct WatchManager::Queue {
  using Due = std::multimap<SteadyTime, const Session*>;
  struct Open {
    std::shared_ptr<Session> session;
    Due::iterator due;
  };
  mutable Mutex mutex;
  CondVar changed;
  std::unordered_map<const Session*, Open> sessions KEELSON_GUARDED_BY(mutex);
  Due due KEELSON_GUARDED_BY(mutex);  // when a session needs attention; each is there once
  // May be over, may have gone, and may be another session at the same address.
  std::vector<const Session*> ended KEELSON_GUARDED_BY(mutex);
  bool woken KEELSON_GUARDED_BY(mutex) = false;

  void Add(std::shared_ptr<Session> session, SteadyTime when) {
    const Session* key = session.get();
    MutexLock lock(mutex);
    sessions[key] = {std::move(session), due.emplace(when, key)};
    // It may have ended before it was here.
    ended.push_back(key);
    changed.notify_all();
  }
  void Ended(const Session* session) {
    MutexLock lock(mutex);
    ended.push_back(session);
    changed.notify_all();
  }
  void Wake() {
    MutexLock lock(mutex);
    woken = true;
    changed.notify_all();
  }
  std::shared_ptr<Session> Take(const Session* session) KEELSON_REQUIRES(mutex) {
    auto found = sessions.find(session);
    std::shared_ptr<Session> taken = std::move(found->second.session);
    due.erase(found->second.due);
    sessions.erase(found);
    return taken;
  }
};

class WatchManager::Session : public storage::WatchSink, public std::enable_shared_from_this<Session> {
 public:
  Session(const Context& context, std::shared_ptr<http::ResponseWriter> writer, SteadyTime ends, bool framed,
          std::shared_ptr<flowcontrol::WatchCounts> counts, std::weak_ptr<Queue> queue)
      : writer_(std::move(writer)),
        output_(context.output),
        info_(*context.resource),
        ends_(ends),
        framed_(framed),
        open_(LongRunning(context)),
        meters_(context.info),
        counts_(std::move(counts)),
        scope_(flowcontrol::WatchCounts::ScopeOf(context.info)),
        queue_(std::move(queue)) {
    if (output_.as == As::kTable) {
      table_ = std::make_unique<TableMaker>(info_, context.query(), output_.version);
    }
    counts_->Add(scope_, 1);
  }
  ~Session() override { counts_->Add(scope_, -1); }

  bool OnEvent(const storage::EventPtr& event) override {
    if (over_.load() || writer_->closed()) return false;
    storage::Bytes frame = Encode(*event);
    meters_.events.Increment();
    meters_.sizes.Observe(static_cast<double>(frame->size()));
    if (initial_) {
      initial_bytes_ += frame->size();
    } else if (writer_->queued_bytes() > kMaxQueued + initial_bytes_) {
      return Cut();
    }
    return Send(std::move(frame));
  }

  void OnEnd(const Error& error) override {
    // As upstream, a watch of a resource that has gone ends without a word.
    if (error.Is(Code::kCancelled)) return End();
    metav1::Status status = api::ToStatus(error);
    status.mutable_metadata();
    const api::GroupVersionKind gvk{"", "v1", "Status"};
    Send(std::make_shared<const std::string>(
        output_.encoding == Encoding::kProtobuf
            ? storage::ProtobufFrame("ERROR", WrapProtobuf(gvk, api::EncodeRaw(status)))
            : storage::JsonFrame("ERROR", api::EncodeJson(status, gvk))));
    End();
  }

  void InitialDone() { initial_ = false; }
  void Keep(std::unique_ptr<storage::WatchHandle> handle, bool bookmarks) {
    handle_ = std::move(handle);
    farewell_due_ = bookmarks;
  }
  bool over() const { return over_.load() || writer_->closed(); }
  SteadyTime ends() const { return ends_; }
  // When the session needs attention: first for its last bookmark, then for its end.
  SteadyTime next() const { return farewell_due_ ? ends_ - kFarewell : ends_; }
  void SayFarewell() {
    farewell_due_ = false;
    handle_->RequestBookmark();
  }
  void End() {
    if (over_.exchange(true)) return;
    writer_->Finish();
    if (auto queue = queue_.lock()) queue->Ended(this);
  }
  // Not inside a callback of the watch.
  void Release() {
    handle_.reset();
    End();
  }

 private:
  bool Cut() {
    terminated_total.With({std::string(info_.group), std::string(info_.resource)}).Increment();
    End();
    return false;
  }

  bool Send(storage::Bytes frame) {
    // A WebSocket message has its own length.
    constexpr size_t kLength = 4;
    if (!framed_ && output_.encoding == Encoding::kProtobuf) {
      frame = std::make_shared<const std::string>(frame->substr(kLength));
    }
    return writer_->Write(std::move(frame));
  }

  storage::Bytes Encode(const storage::Event& event) {
    bool protobuf = output_.encoding == Encoding::kProtobuf;
    storage::Format format = protobuf ? storage::Format::kProtobuf : storage::Format::kJson;
    if (table_) {
      return std::make_shared<const std::string>(
          storage::JsonFrame(event.TypeName(), table_->Row(*event.object())));
    }
    if (output_.as == As::kPartialMetadata) {
      return std::make_shared<const std::string>(
          protobuf
              ? storage::ProtobufFrame(event.TypeName(),
                                       PartialMetadataProtobuf(*event.object(), output_.version))
              : storage::JsonFrame(event.TypeName(), PartialMetadataJson(*event.object(), output_.version)));
    }
    return event.Frame(format);
  }

  const std::shared_ptr<http::ResponseWriter> writer_;
  const Output output_;
  const api::ResourceInfo& info_;
  const SteadyTime ends_;
  const bool framed_;  // events are delimited by WebSocket messages, else by their lengths
  bool farewell_due_ = false;
  const LongRunning open_;
  const WatchMeters meters_;
  const std::shared_ptr<flowcontrol::WatchCounts> counts_;
  const flowcontrol::WatchCounts::Scope scope_;
  const std::weak_ptr<Queue> queue_;
  std::unique_ptr<TableMaker> table_;
  std::unique_ptr<storage::WatchHandle> handle_;
  std::atomic<bool> over_{false}, initial_{true};
  size_t initial_bytes_ = 0;  // the initial list may take longer
};

WatchManager::WatchManager(registry::Registry& registry, std::chrono::seconds min_timeout, Clock& clock)
    : registry_(registry), min_timeout_(min_timeout), clock_(clock), queue_(std::make_shared<Queue>()) {}

WatchManager::~WatchManager() = default;

size_t WatchManager::size() const {
  MutexLock lock(queue_->mutex);
  return queue_->sessions.size();
}

void WatchManager::Start(Context& context, const registry::ListOptions& options) {
  if (context.output.as == As::kTable) {
    if (Result<> good = TableMaker::Check(context.query()); !good) return ReplyError(context, good.error());
  }
  bool websocket = http::WantsWebSocket(*context.request);
  std::shared_ptr<http::ResponseWriter> writer = context.writer;
  if (websocket) {
    bool text = context.output.encoding != Encoding::kProtobuf;
    auto upgraded = http::NewWebSocketWriter(*context.request, std::move(writer), text);
    if (!upgraded) return ReplyError(context, upgraded.error());
    writer = std::move(*upgraded);
  }
  auto session = std::make_shared<Session>(
      context, writer, clock_.SteadyNow() + TimeoutOf(options, min_timeout_), !websocket, counts_, queue_);
  // Headers are sent with the first event: initial events follow in the connection's queue, and an error of
  // Watch() must still be a plain response.
  struct Head : storage::WatchSink {
    std::shared_ptr<Session> session;
    std::shared_ptr<http::ResponseWriter> writer;
    http::Headers headers;
    Mutex mutex;
    bool started KEELSON_GUARDED_BY(mutex) = false;

    void Begin() {
      MutexLock lock(mutex);
      if (std::exchange(started, true)) return;
      writer->Start(200, std::move(headers));
    }
    bool OnEvent(const storage::EventPtr& event) override {
      Begin();
      return session->OnEvent(event);
    }
    void OnEnd(const Error& error) override {
      Begin();
      session->OnEnd(error);
    }
  };
  auto head = std::make_shared<Head>();
  head->session = session;
  head->writer = writer;
  head->headers = ReplyHeaders(context, ContentType(context.output));
  const SteadyTime begin = SteadyTime::clock::now();
  auto handle = registry_.Watch(*context.resource, context.info.ns, options, head);
  if (!handle) return ReplyError(context, handle.error());
  context.status = 200;
  head->Begin();
  session->InitialDone();
  if (options.send_initial_events.value_or(false)) {
    const RequestInfo& info = context.info;
    const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
    list_seconds.HistogramWith({info.group, info.version, info.resource, ScopeLabel(info)})
        .Observe(took.count());
  }
  session->Keep(std::move(*handle), options.allow_bookmarks);
  const Session* key = session.get();
  queue_->Add(session, session->next());
  std::weak_ptr<Queue> queue = queue_;
  writer->OnClose([queue, key] {
    if (auto alive = queue.lock()) alive->Ended(key);
  });
}

void WatchManager::Run(std::stop_token stop) {
  std::stop_callback wake(stop, [this] { queue_->Wake(); });
  Queue& queue = *queue_;
  while (!stop.stop_requested()) {
    std::vector<std::shared_ptr<Session>> over, parting;
    {
      MutexLock lock(queue.mutex);
      while (!queue.woken && queue.ended.empty()) {
        const SteadyTime now = clock_.SteadyNow();
        const SteadyTime next = queue.due.empty() ? now + kIdle : queue.due.begin()->first;
        if (next <= now) break;
        clock_.WaitUntil(queue.mutex, queue.changed, next);
      }
      queue.woken = false;
      for (const Session* ended : std::exchange(queue.ended, {})) {
        auto found = queue.sessions.find(ended);
        if (found != queue.sessions.end() && found->second.session->over()) over.push_back(queue.Take(ended));
      }
      const SteadyTime now = clock_.SteadyNow();
      while (!queue.due.empty() && queue.due.begin()->first <= now) {
        const Session* key = queue.due.begin()->second;
        Queue::Open& open = queue.sessions.at(key);
        if (open.session->over() || open.session->ends() <= now) {
          over.push_back(queue.Take(key));
          continue;
        }
        parting.push_back(open.session);
        queue.due.erase(open.due);
        open.due = queue.due.emplace(open.session->ends(), key);
      }
    }
    for (const auto& session : parting) session->SayFarewell();
    for (const auto& session : over) session->Release();
  }
  EndAll();
}

void WatchManager::EndAll() {
  std::vector<std::shared_ptr<Session>> rest;
  {
    MutexLock lock(queue_->mutex);
    for (auto& entry : queue_->sessions) rest.push_back(std::move(entry.second.session));
    queue_->sessions.clear();
    queue_->due.clear();
  }
  for (const auto& session : rest) session->Release();
}

}  // namespace keelson::apiserver
