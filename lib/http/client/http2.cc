// The client's side of an HTTP/2 connection: many exchanges, each with its own window.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "lib/base/clock.h"
#include "lib/event/loop.h"
#include "lib/http/client/core.h"
#include "lib/http/http2_link.h"

namespace keelson::http {
namespace {

constexpr uint32_t kStreamWindow = 1 << 20;
constexpr int32_t kConnectionWindow = 64 << 20;
constexpr uint32_t kMaxStreams = 1000;

// How long the server may be silent before it is asked for a sign of life, and how long that may take.
struct Signs {
  std::chrono::milliseconds head;  // while a response is waited for
  std::chrono::milliseconds body;  // while only more of responses is
  std::chrono::milliseconds sign;
  std::chrono::milliseconds look;  // how often to look
};
using std::chrono::milliseconds;
// client-go's.
constexpr Signs kSignsOfOne{milliseconds(30000), milliseconds(30000), milliseconds(15000),
                            milliseconds(5000)};
// A busy server may need seconds for a sign.
constexpr Signs kSignsOfSeveral{milliseconds(1000), milliseconds(5000), milliseconds(3000),
                                milliseconds(500)};

struct ClientStream {
  std::shared_ptr<Exchange> exchange;  // null after the caller gave up
  OutBody out;
  int status = 0;
  Headers headers;
  size_t unread = 0;  // received, and not yet returned to the stream's window
};

class Http2Connection final : public ClientConnection,
                              public Http2Link,
                              public std::enable_shared_from_this<Http2Connection> {
 public:
  Http2Connection(std::shared_ptr<ClientCore> core, ServerConnection server)
      : Http2Link(std::move(server.channel)),
        core_(std::move(core)),
        signs_(server.one_of_several ? kSignsOfSeveral : kSignsOfOne),
        timer_(channel_->loop()) {}

  void Begin();
  bool HasRoom() const override;
  bool shared() const override { return true; }
  void Submit(std::shared_ptr<Exchange> exchange) override;
  void Close() override {
    Error error(Code::kCancelled, "client closed");
    Ended(&error);
  }
  void Abort(Exchange& exchange) override;
  void Resume(Exchange& exchange, size_t read) override;

 protected:
  OutBody* FindBody(int32_t id) override {
    auto at = streams_.find(id);
    return at == streams_.end() ? nullptr : &at->second.out;
  }
  void Ended(const Error* failure) override;

 private:
  static Http2Connection& Of(void* self) {
    return *static_cast<Http2Connection*>(static_cast<Http2Link*>(self));
  }
  nghttp2_session_callbacks* Callbacks();
  void FollowBody(int32_t id, ClientStream& stream);
  void PumpBody(int32_t id, const Exchange* exchange);
  int OnHeader(int32_t id, std::string_view name, std::string_view value);
  int OnFrame(const nghttp2_frame& frame);
  int OnChunk(int32_t id, std::string_view bytes);
  int OnStreamClose(int32_t id, uint32_t code);
  ClientStream* Find(int32_t id) {
    auto at = streams_.find(id);
    return at == streams_.end() ? nullptr : &at->second;
  }
  std::pair<const int32_t, ClientStream>* Find(const Exchange& exchange);
  void LookLater();
  void Look();
  void Heard() {
    heard_ = SteadyTime::clock::now();
    asked_.reset();
  }

  std::shared_ptr<ClientCore> core_;
  const Signs signs_;
  std::unordered_map<int32_t, ClientStream> streams_;
  bool going_away_ = false;
  // ---- signs of life; looked for as long as there are streams ----
  event::Timer timer_;
  bool looking_ = false;
  SteadyTime heard_;
  std::optional<SteadyTime> asked_;  // since when a ping has had no answer
  SteadyTime looked_;
};

void Http2Connection::LookLater() {
  if (!looking_) looked_ = std::max(looked_, SteadyTime::clock::now());
  looking_ = true;
  timer_.Start(signs_.look, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->Look();
  });
}

void Http2Connection::Look() {
  looking_ = false;
  if (ended_ || streams_.empty()) return;
  const SteadyTime now = SteadyTime::clock::now();
  // This program stood still itself: what the server has sent meanwhile is not read yet.
  if (now - looked_ >= 3 * signs_.look) Heard();
  looked_ = now;
  if (asked_ && now - *asked_ >= signs_.sign) {
    const Error error(Code::kUnavailable, "HTTP/2: the server gives no sign of life");
    return Ended(&error);
  }
  const bool waits = std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    const auto& exchange = entry.second.exchange;
    return exchange && !exchange->head_seen();
  });
  if (!asked_ && now - heard_ >= (waits ? signs_.head : signs_.body)) {
    asked_ = now;
    nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr);
    Pump();
    if (ended_) return;
  }
  LookLater();
}

nghttp2_session_callbacks* Http2Connection::Callbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* self) {
        if (frame->hd.type != NGHTTP2_HEADERS) return 0;
        return Of(self).OnHeader(frame->hd.stream_id, {reinterpret_cast<const char*>(name), name_size},
                                 {reinterpret_cast<const char*>(value), value_size});
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks,
      [](nghttp2_session*, const nghttp2_frame* frame, void* self) { return Of(self).OnFrame(*frame); });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
        return Of(self).OnChunk(id, {reinterpret_cast<const char*>(data), size});
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, int32_t id, uint32_t code, void* self) {
        return Of(self).OnStreamClose(id, code);
      });
  return callbacks;
}

void Http2Connection::Begin() {
  nghttp2_session_callbacks* callbacks = Callbacks();
  nghttp2_option* options = nullptr;
  nghttp2_option_new(&options);
  nghttp2_option_set_no_auto_window_update(options, 1);
  Create(nghttp2_session_client_new2, callbacks, options);
  nghttp2_option_del(options);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                             {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow}};
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  channel_->SetReceiver(shared_from_this());
  Pump();
}

bool Http2Connection::HasRoom() const {
  if (ended_ || going_away_ || !nghttp2_session_check_request_allowed(session_.get())) return false;
  uint32_t limit =
      nghttp2_session_get_remote_settings(session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  return streams_.size() < std::min(limit, kMaxStreams);
}

void Http2Connection::Submit(std::shared_ptr<Exchange> exchange) {
  const ClientRequest& request = exchange->request;
  HeaderList list;
  list.Add(":method", request.method);
  list.Add(":scheme", "https");
  std::string_view host = request.headers.Get("Host");
  list.Add(":authority", host.empty() ? core_->endpoint().authority : host);
  list.Add(":path", request.target);
  list.AddAll(request.headers);
  if (!request.body.empty() && !request.headers.Has("Content-Length")) {
    list.Add("content-length", std::to_string(request.body.size()));
  }
  nghttp2_data_provider provider = Provider();
  const bool has_body = request.body_stream || !request.body.empty();
  int32_t id = nghttp2_submit_request(session_.get(), nullptr, list.get().data(), list.get().size(),
                                      has_body ? &provider : nullptr, nullptr);
  if (id < 0) {
    return exchange->OnFail(Error(Code::kUnavailable, std::string("HTTP/2: ") + nghttp2_strerror(id)));
  }
  exchange->carrier = weak_from_this();
  ClientStream& stream = streams_[id];
  stream.out.Push(std::shared_ptr<const std::string>(exchange, &request.body));
  stream.out.finished = !request.body_stream;
  stream.exchange = std::move(exchange);
  if (!stream.out.finished) FollowBody(id, stream);
  if (!looking_) {
    Heard();
    LookLater();
  }
  Pump();
}

void Http2Connection::FollowBody(int32_t id, ClientStream& stream) {
  const std::function<void()> pump = [weak = weak_from_this(), loop = core_->loop(), id,
                                      exchange = stream.exchange.get()] {
    loop->Post([weak, id, exchange] {
      if (auto self = weak.lock()) self->PumpBody(id, exchange);
    });
  };
  stream.out.on_sent = [&stream, pump](size_t) {
    if (stream.out.size == 0 && !stream.out.finished) pump();
  };
  stream.exchange->request.body_stream->OnReadable(pump);
}

// Gives nghttp2 what has come of a streamed body, once it has sent all before.
void Http2Connection::PumpBody(int32_t id, const Exchange* exchange) {
  ClientStream* stream = Find(id);
  if (ended_ || !stream || stream->exchange.get() != exchange || stream->out.size > 0 ||
      stream->out.finished) {
    return;
  }
  BodyStream::Batch batch = exchange->request.body_stream->Take();
  for (auto& piece : batch.pieces) stream->out.Push(std::move(piece));
  if (batch.failure) {
    auto failed = std::exchange(stream->exchange, nullptr);
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    failed->OnFail(*batch.failure);
  } else {
    stream->out.finished = batch.finished;
    if (batch.finished || stream->out.size > 0) Http2Link::Resume(id);
  }
  Pump();
}

int Http2Connection::OnHeader(int32_t id, std::string_view name, std::string_view value) {
  ClientStream* stream = Find(id);
  if (!stream || stream->status >= 200) {
    if (!stream || stream->exchange == nullptr || stream->exchange->head_seen()) return 0;  // trailers
  }
  if (name == ":status") {
    stream->status = atoi(std::string(value).c_str());
    stream->headers = {};
  } else {
    stream->headers.Add(std::string(name), std::string(value));
  }
  return 0;
}

int Http2Connection::OnFrame(const nghttp2_frame& frame) {
  Heard();
  if (frame.hd.type == NGHTTP2_GOAWAY) going_away_ = true;
  ClientStream* stream = Find(frame.hd.stream_id);
  if (!stream || !stream->exchange) return 0;
  if (frame.hd.type == NGHTTP2_HEADERS && stream->status >= 200 && !stream->exchange->head_seen()) {
    stream->exchange->OnHead(stream->status, std::move(stream->headers));
  }
  bool ends = (frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA) &&
              (frame.hd.flags & NGHTTP2_FLAG_END_STREAM);
  if (!ends) return 0;
  stream->exchange->OnEnd();
  // The server needs no more of the request.
  if (!stream->out.finished) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_CANCEL);
  }
  return 0;
}

int Http2Connection::OnChunk(int32_t id, std::string_view bytes) {
  Heard();
  // Always return bytes to the connection's window: a slow reader then only holds up its own stream.
  nghttp2_session_consume_connection(session_.get(), bytes.size());
  ClientStream* stream = Find(id);
  if (!stream) return 0;
  stream->unread += bytes.size();
  bool behind = stream->exchange && stream->exchange->OnBody(bytes);
  if (!behind) nghttp2_session_consume_stream(session_.get(), id, std::exchange(stream->unread, 0));
  return 0;
}

int Http2Connection::OnStreamClose(int32_t id, uint32_t code) {
  auto at = streams_.find(id);
  if (at == streams_.end()) return 0;
  std::shared_ptr<Exchange> exchange = std::move(at->second.exchange);
  streams_.erase(at);
  if (!exchange || exchange->over()) return 0;
  Error error(Code::kUnavailable, exchange->request.method + " " + exchange->request.target +
                                      ": stream ended by the server: " + nghttp2_http2_strerror(code));
  if (code != NGHTTP2_REFUSED_STREAM || exchange->head_seen()) {
    exchange->OnFail(std::move(error));
    return 0;
  }
  // The server has not processed it: a new connection may take it. Post, to leave nghttp2's callback first.
  channel_->loop().Post([core = core_, exchange, error] { core->Retry(exchange, error); });
  return 0;
}

std::pair<const int32_t, ClientStream>* Http2Connection::Find(const Exchange& exchange) {
  for (auto& entry : streams_) {
    if (entry.second.exchange.get() == &exchange) return &entry;
  }
  return nullptr;
}

void Http2Connection::Abort(Exchange& exchange) {
  auto* found = Find(exchange);
  if (!found) return;
  found->second.exchange.reset();
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, found->first, NGHTTP2_CANCEL);
  Pump();
}

void Http2Connection::Resume(Exchange& exchange, size_t) {
  auto* found = Find(exchange);
  if (!found) return;
  nghttp2_session_consume_stream(session_.get(), found->first, std::exchange(found->second.unread, 0));
  Pump();
}

void Http2Connection::Ended(const Error* failure) {
  if (std::exchange(ended_, true)) return;
  auto self = shared_from_this();
  timer_.Cancel();
  channel_->Close();
  core_->Gone(self);
  Error error = failure ? *failure : Error(Code::kUnavailable, "connection closed by the server");
  auto streams = std::exchange(streams_, {});
  for (auto& [id, stream] : streams) {
    auto& exchange = stream.exchange;
    if (!exchange || exchange->over()) continue;
    const std::string& method = exchange->request.method;
    bool harmless = method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
    if (harmless && !exchange->head_seen() && !error.Is(Code::kCancelled)) {
      core_->Retry(exchange, error);
    } else {
      exchange->OnFail(error.Wrap(method + " " + exchange->request.target));
    }
  }
}

}  // namespace

std::shared_ptr<ClientConnection> MakeHttp2Connection(std::shared_ptr<ClientCore> core,
                                                      ServerConnection server) {
  auto connection = std::make_shared<Http2Connection>(std::move(core), std::move(server));
  connection->Begin();
  return connection;
}

}  // namespace keelson::http
