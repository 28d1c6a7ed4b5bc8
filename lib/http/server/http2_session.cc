// The server's side of an HTTP/2 connection.
#include <algorithm>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>

#include "lib/http/http2_link.h"
#include "lib/http/server/core.h"
#include "lib/http/server/response.h"

namespace keelson::http {
namespace {

constexpr uint32_t kStreamWindow = 256 << 10;
constexpr int32_t kConnectionWindow = 4 << 20;
constexpr size_t kMaxHeaders = 256 << 10;
// The limit for the request data that one peer may make the server hold. A few bytes of HPACK can expand to
// a long header.
constexpr size_t kMaxRequestBytes = 32 << 20;

using Steady = std::chrono::steady_clock;

struct ServerStream {
  std::shared_ptr<ServerRequest> request = std::make_shared<ServerRequest>();
  std::string target, authority;
  size_t header_bytes = 0;
  size_t held = 0;                     // its part of the connection's kMaxRequestBytes
  int refusal = 0;                     // the status for a bad head
  std::shared_ptr<Response> response;  // set at dispatch
  std::shared_ptr<BodyStream> body;    // of a request that its handler streams
  bool body_over = false;
  OutBody out;
  Steady::time_point moved = Steady::now();  // when it began, or last sent a piece of the response
  bool is_head = false, refused = false;

  // The request should be complete by now, or the response should have moved.
  bool WaitsForPeer() const { return !response || out.size > 0; }
};

Error ClientGone() { return Error(Code::kCancelled, "the client has gone before its request was complete"); }

bool Chance(double part) {
  if (part <= 0) return false;
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(random) < part;
}

// Limits frames that make the server reset streams: allows a burst, then a rate. (nghttp2 limits the resets
// that the peer sends.)
class MistakeBudget {
 public:
  bool Spend() {
    Steady::time_point now = Steady::now();
    tokens_ = std::min(kBurst, tokens_ + kPerSecond * std::chrono::duration<double>(now - filled_).count());
    filled_ = now;
    return --tokens_ >= 0;
  }

 private:
  static constexpr double kBurst = 1000, kPerSecond = 33;
  double tokens_ = kBurst;
  Steady::time_point filled_ = Steady::now();
};

class Http2Session final : public Http2Link,
                           public Connection,
                           public Response::Session,
                           public std::enable_shared_from_this<Http2Session> {
 public:
  Http2Session(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel, Origin origin)
      : Http2Link(std::move(channel)),
        core_(std::move(core)),
        origin_(std::move(origin)),
        turns_(core_->TurnsOf(channel_->loop())),
        timer_(channel_->loop()) {}

  void Begin();
  event::Loop& loop() override { return channel_->loop(); }
  void Drain() override;
  void Abort() override { Ended(nullptr); }

  void WakeResponse(std::shared_ptr<Response> response, bool in_turn) override {
    if (in_turn) {
      // A response that only this would keep has no connection any more.
      return turns_->Add([weak = weak_from_this(), waiting = std::weak_ptr<Response>(response)] {
        auto self = weak.lock();
        auto one = waiting.lock();
        if (self && one) self->Deliver(one);
      });
    }
    channel_->loop().Post(
        [self = shared_from_this(), response = std::move(response)] { self->Deliver(response); });
  }
  Result<std::unique_ptr<Stream>> UpgradeResponse(const std::shared_ptr<Response>& response,
                                                  Headers) override {
    response->Complete();
    return Error(Code::kBadRequest, "upgrade: not possible over HTTP/2");
  }
  size_t BytesBehind(const Response& response) const override { return response.behind; }

 protected:
  OutBody* FindBody(int32_t id) override {
    auto at = streams_.find(id);
    return at == streams_.end() ? nullptr : &at->second.out;
  }
  void Ended(const Error* failure) override;

 private:
  static Http2Session& Of(void* self) { return *static_cast<Http2Session*>(static_cast<Http2Link*>(self)); }
  nghttp2_session_callbacks* Callbacks();
  int OnBeginHeaders(int32_t id);
  int OnHeader(int32_t id, std::string_view name, std::string_view value);
  int OnFrame(const nghttp2_frame& frame);
  void OnFrameSent(const nghttp2_frame& frame);
  int OnChunk(int32_t id, std::string_view bytes);
  bool WantsStream(const ServerStream& stream) const;
  void BeginStream(int32_t id, ServerStream& stream);
  void OnStreamChunk(int32_t id, ServerStream& stream, std::string_view bytes);
  void Taken(int32_t id, const BodyStream* body, size_t size);
  int OnStreamClose(int32_t id);
  int OnMistake();
  bool Hold(ServerStream& stream, size_t bytes);
  void Dispatch(int32_t id, ServerStream& stream);
  void Refuse(int32_t id, ServerStream& stream, int status);
  void Deliver(const std::shared_ptr<Response>& response);
  void Respond(int32_t id, ServerStream& stream, Response::Batch& batch);
  void WatchTime();
  void Sweep();

  std::shared_ptr<ServerCore> core_;
  const Origin origin_;
  const std::shared_ptr<Turns> turns_;
  std::optional<event::Timer> timer_;  // reset at the end: writers may live longer, on any thread
  std::unordered_map<int32_t, ServerStream> streams_;
  size_t held_ = 0;  // by all streams
  MistakeBudget mistakes_;
  Steady::time_point quiet_since_ = Steady::now();  // since when there is no stream
};

nghttp2_session_callbacks* Http2Session::Callbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        bool request = frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
        return request ? Of(self).OnBeginHeaders(frame->hd.stream_id) : 0;
      });
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* self) {
        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
        return Of(self).OnHeader(frame->hd.stream_id, {reinterpret_cast<const char*>(name), name_size},
                                 {reinterpret_cast<const char*>(value), value_size});
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks,
      [](nghttp2_session*, const nghttp2_frame* frame, void* self) { return Of(self).OnFrame(*frame); });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        Of(self).OnFrameSent(*frame);
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
        return Of(self).OnChunk(id, {reinterpret_cast<const char*>(data), size});
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks,
      [](nghttp2_session*, int32_t id, uint32_t, void* self) { return Of(self).OnStreamClose(id); });
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
      callbacks,
      [](nghttp2_session*, const nghttp2_frame*, int, void* self) { return Of(self).OnMistake(); });
  return callbacks;
}

void Http2Session::Begin() {
  nghttp2_session_callbacks* callbacks = Callbacks();
  nghttp2_option* options = nullptr;
  nghttp2_option_new(&options);
  nghttp2_option_set_max_send_header_block_length(options, kMaxHeaders);
  nghttp2_option_set_no_auto_window_update(options, 1);
  Create(nghttp2_session_server_new2, callbacks, options);
  nghttp2_option_del(options);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, core_->options.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHeaders}};
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  core_->Add(shared_from_this());
  channel_->SetReceiver(shared_from_this());
  WatchTime();
  Pump();
}

void Http2Session::WatchTime() {
  timer_->Start(std::chrono::milliseconds(core_->options.idle_timeout) / 4, [this] { Sweep(); });
}

// Ends what the peer has abandoned: a connection without streams, requests that never become complete, and
// responses that the peer does not read (a closed window looks alive to TCP).
void Http2Session::Sweep() {
  auto self = shared_from_this();
  const Steady::time_point limit = Steady::now() - core_->options.idle_timeout;
  if (streams_.empty() && quiet_since_ < limit) Drain();
  for (const auto& [id, stream] : streams_) {
    if (stream.WaitsForPeer() && stream.moved < limit) {
      nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    }
  }
  Pump();
  if (!ended_) WatchTime();
}

void Http2Session::Drain() {
  if (ended_) return;
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_.get()), NGHTTP2_NO_ERROR, nullptr,
                        0);
  Pump();
}

int Http2Session::OnBeginHeaders(int32_t id) {
  streams_[id];
  return 0;
}

int Http2Session::OnHeader(int32_t id, std::string_view name, std::string_view value) {
  auto at = streams_.find(id);
  if (at == streams_.end()) return 0;
  ServerStream& stream = at->second;
  const size_t size = name.size() + value.size() + 32;
  stream.header_bytes += size;
  if (stream.header_bytes > kMaxHeaders) stream.refusal = 431;
  if (stream.refusal == 0 && !Hold(stream, size)) stream.refusal = 429;
  if (stream.refusal != 0) return 0;
  if (name == ":method") {
    stream.request->method = value;
  } else if (name == ":path") {
    stream.target = value;
  } else if (name == ":authority") {
    stream.authority = value;
  } else if (name[0] != ':') {
    stream.request->headers.Add(std::string(name), std::string(value));
  }
  return 0;
}

bool Http2Session::Hold(ServerStream& stream, size_t bytes) {
  if (held_ + bytes > kMaxRequestBytes) return false;
  held_ += bytes;
  stream.held += bytes;
  return true;
}

int Http2Session::OnFrame(const nghttp2_frame& frame) {
  bool part = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  auto at = part ? streams_.find(frame.hd.stream_id) : streams_.end();
  if (at == streams_.end() || at->second.refused) return 0;
  ServerStream& stream = at->second;
  const bool ends = frame.hd.flags & NGHTTP2_FLAG_END_STREAM;
  if (stream.response) {
    if (ends && stream.body && !std::exchange(stream.body_over, true)) stream.body->Finish();
  } else if (stream.refusal != 0) {
    Refuse(at->first, stream, stream.refusal);
  } else if (ends) {
    Dispatch(at->first, stream);
  } else if (frame.hd.type == NGHTTP2_HEADERS && WantsStream(stream)) {
    BeginStream(at->first, stream);
  }
  return 0;
}

// A response may end before its request: the client need not send the rest (RFC 9113, 8.1).
void Http2Session::OnFrameSent(const nghttp2_frame& frame) {
  const bool part = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  if (!part || !(frame.hd.flags & NGHTTP2_FLAG_END_STREAM)) return;
  auto at = streams_.find(frame.hd.stream_id);
  if (at == streams_.end() || !at->second.body || at->second.body_over) return;
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, at->first, NGHTTP2_NO_ERROR);
}

bool Http2Session::WantsStream(const ServerStream& stream) const {
  if (!core_->options.streams_body) return false;
  const std::string_view length = stream.request->headers.Get("Content-Length");
  if (!length.empty() && strtoull(std::string(length).c_str(), nullptr, 10) <= kShortBody) return false;
  ServerRequest request;
  request.method = stream.request->method;
  request.headers = stream.request->headers;
  return SetTarget(request, stream.target) && core_->options.streams_body(request);
}

void Http2Session::BeginStream(int32_t id, ServerStream& stream) {
  stream.body = stream.request->body_stream = std::make_shared<BodyStream>();
  stream.body->OnTaken([weak = weak_from_this(), id, body = stream.body.get()](size_t size) {
    auto self = weak.lock();
    if (!self) return;
    event::Loop& loop = self->channel_->loop();
    loop.Post([self = std::move(self), id, body, size] { self->Taken(id, body, size); });
  });
  Dispatch(id, stream);
}

void Http2Session::OnStreamChunk(int32_t id, ServerStream& stream, std::string_view bytes) {
  if (stream.body_over) return;
  if (Hold(stream, bytes.size())) {
    stream.body->Write(bytes);
    return;
  }
  stream.body_over = true;
  stream.body->Fail(Error(Code::kTooManyRequests, "the client sends too many requests at once"));
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_ENHANCE_YOUR_CALM);
}

// The reader of a streamed body has made room for more of it.
void Http2Session::Taken(int32_t id, const BodyStream* body, size_t size) {
  auto at = streams_.find(id);
  if (ended_ || at == streams_.end() || at->second.body.get() != body) return;
  held_ -= size;
  at->second.held -= size;
  nghttp2_session_consume_stream(session_.get(), id, size);
  Pump();
}

int Http2Session::OnChunk(int32_t id, std::string_view bytes) {
  nghttp2_session_consume_connection(session_.get(), bytes.size());
  auto at = streams_.find(id);
  if (at != streams_.end() && at->second.body) {
    OnStreamChunk(id, at->second, bytes);
    return 0;
  }
  nghttp2_session_consume_stream(session_.get(), id, bytes.size());
  if (at == streams_.end() || at->second.refused || at->second.response) return 0;
  std::string& body = at->second.request->body;
  if (body.size() + bytes.size() > core_->options.max_body) {
    Refuse(id, at->second, 413);
  } else if (!Hold(at->second, bytes.size())) {
    Refuse(id, at->second, 429);
  } else {
    body += bytes;
  }
  return 0;
}

void Http2Session::Dispatch(int32_t id, ServerStream& stream) {
  ServerRequest& request = *stream.request;
  stream.is_head = request.method == "HEAD";
  if (!SetTarget(request, stream.target)) return Refuse(id, stream, 400);
  if (!stream.authority.empty()) request.headers.Set("Host", stream.authority);
  request.http_major = 2;
  request.remote_address = origin_.remote_address;
  request.peer = origin_.peer;
  request.peer_refused = origin_.peer_refused;
  stream.response = std::make_shared<Response>(shared_from_this());
  stream.response->stream_id = id;
  stream.out.on_sent = [&stream](size_t size) {
    stream.response->behind -= size;
    stream.moved = Steady::now();
  };
  core_->Dispatch(std::exchange(stream.request, nullptr), MakeWriter(stream.response));
  if (Chance(core_->options.goaway_chance)) Drain();
}

std::string_view RefusalText(int status) {
  switch (status) {
    case 413:
      return "request body too large\n";
    case 429:
      return "Too many requests, please try again later.\n";
    case 431:
      return "request header fields too large\n";
    default:
      return "malformed request\n";
  }
}

void Http2Session::Refuse(int32_t id, ServerStream& stream, int status) {
  stream.refused = true;
  stream.request.reset();
  held_ -= std::exchange(stream.held, 0);
  Response::Batch batch;
  batch.status = status;
  batch.headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  if (status == 429) batch.headers.Add("Retry-After", "1");
  batch.data = {std::make_shared<const std::string>(RefusalText(status))};
  batch.content_length = batch.data[0]->size();
  batch.finished = true;
  stream.out.Push(batch.data[0]);
  stream.out.finished = true;
  Respond(id, stream, batch);
}

int Http2Session::OnMistake() {
  if (!mistakes_.Spend()) nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
  return 0;
}

int Http2Session::OnStreamClose(int32_t id) {
  auto at = streams_.find(id);
  if (at == streams_.end()) return 0;
  std::shared_ptr<Response> response = std::move(at->second.response);
  held_ -= at->second.held;
  const std::shared_ptr<BodyStream> cut = at->second.body_over ? nullptr : std::move(at->second.body);
  streams_.erase(at);
  if (cut) cut->Fail(ClientGone());
  if (response) response->Complete();
  if (streams_.empty()) quiet_since_ = Steady::now();
  return 0;
}

void Http2Session::Respond(int32_t id, ServerStream& stream, Response::Batch& batch) {
  HeaderList list;
  list.Add(":status", std::to_string(batch.status));
  bool has_body = batch.status != 204 && batch.status != 304;
  if (batch.content_length && has_body) {
    batch.headers.Set("content-length", std::to_string(*batch.content_length));
  } else {
    batch.headers.Remove("content-length");
  }
  list.AddAll(batch.headers);
  if (!batch.headers.Has("Date")) list.Add("date", HttpDate());
  bool empty = batch.content_length && *batch.content_length == 0;
  nghttp2_data_provider provider = Provider();
  bool headers_only = stream.is_head || !has_body || empty;
  nghttp2_submit_response(session_.get(), id, list.get().data(), list.get().size(),
                          headers_only ? nullptr : &provider);
}

void Http2Session::Deliver(const std::shared_ptr<Response>& response) {
  int32_t id = static_cast<int32_t>(response->stream_id);
  auto at = streams_.find(id);
  if (ended_ || at == streams_.end() || at->second.response != response) return;
  ServerStream& stream = at->second;
  Response::Batch batch = response->Take();
  if (stream.out.size == 0) stream.moved = Steady::now();
  if (!stream.is_head) {
    for (auto& piece : batch.data) {
      response->behind += piece->size();
      stream.out.Push(std::move(piece));
    }
  }
  stream.out.finished = batch.finished;
  if (batch.head) {
    Respond(id, stream, batch);
  } else if (!batch.abandoned) {
    Resume(id);
  }
  if (batch.abandoned) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
  }
  Pump();
}

void Http2Session::Ended(const Error* failure) {
  if (std::exchange(ended_, true)) return;
  auto self = shared_from_this();
  timer_.reset();
  if (failure) {
    channel_->Close();  // such a peer does not wait for what is queued
  } else {
    channel_->CloseGracefully();
  }
  auto streams = std::exchange(streams_, {});
  for (auto& [id, stream] : streams) {
    if (stream.body && !stream.body_over) stream.body->Fail(ClientGone());
    if (stream.response) stream.response->Complete();
  }
  core_->Remove(self);
}

}  // namespace

void StartHttp2(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel, Origin origin) {
  std::make_shared<Http2Session>(std::move(core), std::move(channel), std::move(origin))->Begin();
}

}  // namespace keelson::http
