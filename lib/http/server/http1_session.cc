// The server's side of an HTTP/1.1 connection: one request at a time. It reads the next one after it has
// sent the response.
#include <optional>
#include <utility>

#include "lib/base/percent.h"
#include "lib/base/text.h"
#include "lib/http/channel_stream.h"
#include "lib/http/http1_parser.h"
#include "lib/http/server/core.h"
#include "lib/http/server/response.h"

namespace keelson::http {
namespace {

constexpr size_t kReadAhead = 64 << 10;

// A connection after its upgrade, so that the server closes it when it ends.
class UpgradedConnection final : public Connection {
 public:
  UpgradedConnection(std::shared_ptr<StreamCore> stream) : stream_(std::move(stream)) {}
  event::Loop& loop() override { return stream_->channel().loop(); }
  void Drain() override {}
  void Abort() override { stream_->Close(true); }

 private:
  std::shared_ptr<StreamCore> stream_;
};

class Http1Session final : public Channel::Receiver,
                           public Connection,
                           public Response::Session,
                           public std::enable_shared_from_this<Http1Session> {
 public:
  Http1Session(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel, Origin origin)
      : core_(std::move(core)),
        channel_(std::move(channel)),
        origin_(std::move(origin)),
        turns_(core_->TurnsOf(channel_->loop())),
        timer_(channel_->loop()),
        parser_(Http1Parser::Role::kRequest, {.head = 256 << 10, .body = core_->options.max_body},
                [this](std::string_view piece) { Body(piece); }) {
    parser_.LiftBodyLimit([this](const MessageHead& head) { return streams_ = WantsStream(head); });
  }

  void Begin() {
    core_->Add(shared_from_this());
    channel_->SetReceiver(shared_from_this());
    AwaitRequest();
  }

  event::Loop& loop() override { return channel_->loop(); }
  void Drain() override {
    keep_alive_ = false;
    if (!current_) End(true);
  }
  void Abort() override { End(false); }

  void OnData(std::string_view bytes) override {
    if (Reads() && in_.empty()) {
      bytes.remove_prefix(Parse(bytes));
      in_ = bytes;
    } else {
      in_ += bytes;
      if (Reads()) ParsePending();
    }
    if (current_ && in_.size() >= kReadAhead) channel_->PauseReading();
  }
  void OnEnd(const Error* failure) override {
    // A half-closed client still gets a response that is on its way; otherwise it counts as gone.
    if (!failure && finishing_) {
      keep_alive_ = false;
      return;
    }
    End(false);
  }
  void OnDrained() override {
    if (finishing_) ResponseDone();
  }

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
                                                  Headers headers) override;
  size_t BytesBehind(const Response&) const override { return channel_->queued(); }

 private:
  // Waits for a request, or for the rest of its body.
  bool Reads() const { return !current_ || stream_; }
  bool WantsStream(const MessageHead& head) const;
  void Body(std::string_view piece);
  void BeginStream(ServerRequest& request);
  void EndStream();
  void AwaitRequest();
  size_t Parse(std::string_view bytes);
  void ParsePending();
  void HeadSeen();
  void Dispatch();
  void Refuse(int status, std::string_view message);
  void Deliver(const std::shared_ptr<Response>& response);
  void SendHead(Response::Batch& batch);
  void ResponseDone();
  void End(bool gracefully);

  std::shared_ptr<ServerCore> core_;
  std::shared_ptr<Channel> channel_;
  const Origin origin_;
  const std::shared_ptr<Turns> turns_;
  std::optional<event::Timer> timer_;  // reset at the end: writers may live longer, on any thread
  Http1Parser parser_;
  std::string in_;  // bytes after the current message
  std::string body_;
  std::shared_ptr<BodyStream> stream_;  // while the body of the request in progress arrives
  std::shared_ptr<Response> current_;
  bool head_seen_ = false, streams_ = false;
  bool is_head_request_ = false, keep_alive_ = true, http10_ = false;
  bool chunked_ = false;    // the response in progress
  bool finishing_ = false;  // its last byte is queued
  bool ended_ = false;
};

void Http1Session::AwaitRequest() {
  timer_->Start(core_->options.idle_timeout, [this] { End(true); });
}

// Returns the number of bytes consumed; the caller offers the rest again with more bytes behind it.
size_t Http1Session::Parse(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && Reads() && !ended_) {
    if (!parser_.started()) timer_->Start(core_->options.header_timeout, [this] { End(false); });
    Result<size_t> taken = parser_.Feed(bytes.substr(used));
    if (!taken && stream_) {
      End(false);
      return bytes.size();
    }
    if (!taken) {
      bool body = taken.error().Is(Code::kTooLarge);
      Refuse(body ? 413 : parser_.HeadTooLarge() ? 431 : 400, taken.error().message());
      return bytes.size();
    }
    used += *taken;
    if (parser_.head_done() && !head_seen_) HeadSeen();
    if (parser_.done()) {
      stream_ ? EndStream() : Dispatch();
    } else if (*taken == 0) {
      break;  // the head is incomplete
    }
  }
  return used;
}

void Http1Session::ParsePending() {
  in_.erase(0, Parse(in_));
  if (in_.empty()) std::string().swap(in_);
}

void Http1Session::HeadSeen() {
  head_seen_ = true;
  timer_->Start(core_->options.idle_timeout, [this] { End(false); });
  if (!parser_.done() && EqualsIgnoreCase(parser_.head().headers.Get("Expect"), "100-continue")) {
    channel_->Send("HTTP/1.1 100 Continue\r\n\r\n");
    channel_->Flush();
  }
  if (streams_ && !parser_.done()) Dispatch();
}

bool Http1Session::WantsStream(const MessageHead& head) const {
  if (!core_->options.streams_body || head.upgrade) return false;
  if (!head.chunked && head.content_length.value_or(0) <= kShortBody) return false;
  ServerRequest request;
  request.method = head.method;
  request.headers = head.headers;
  return SetTarget(request, head.target) && core_->options.streams_body(request);
}

void Http1Session::Body(std::string_view piece) {
  if (!stream_) {
    body_ += piece;
  } else if (stream_->Write(piece)) {
    channel_->PauseReading();
  }
}

void Http1Session::BeginStream(ServerRequest& request) {
  stream_ = request.body_stream = std::make_shared<BodyStream>();
  stream_->OnTaken([weak = weak_from_this()](size_t) {
    auto self = weak.lock();
    if (!self) return;
    event::Loop& loop = self->channel_->loop();
    loop.Post([self = std::move(self)] {
      if (self->stream_ && self->in_.size() < kReadAhead) self->channel_->ResumeReading();
    });
  });
  Body(std::exchange(body_, {}));
}

// The body is complete.
void Http1Session::EndStream() {
  std::exchange(stream_, nullptr)->Finish();
  parser_.Reset();
  head_seen_ = false;
}

bool IsHostMissing(const MessageHead& head) { return head.version >= 11 && !head.headers.Has("Host"); }

void Http1Session::Dispatch() {
  timer_->Cancel();
  auto request = std::make_shared<ServerRequest>();
  MessageHead& head = parser_.head();
  if (IsHostMissing(head) || !SetTarget(*request, head.target)) return Refuse(400, "malformed request");
  request->method = std::move(head.method);
  request->headers = std::move(head.headers);
  if (parser_.done()) {
    request->body = std::exchange(body_, {});
  } else {
    BeginStream(*request);
  }
  request->remote_address = origin_.remote_address;
  request->peer = origin_.peer;
  request->peer_refused = origin_.peer_refused;
  keep_alive_ = head.keep_alive && !core_->draining;
  http10_ = head.version < 11;
  is_head_request_ = request->method == "HEAD";
  if (!stream_) {
    parser_.Reset();
    head_seen_ = false;
  }
  current_ = std::make_shared<Response>(shared_from_this());
  core_->Dispatch(std::move(request), MakeWriter(current_));
}

void Http1Session::Refuse(int status, std::string_view message) {
  std::string text = std::to_string(status) + " " + std::string(StatusText(status));
  std::string body = std::string(message) + "\n";
  channel_->Send("HTTP/1.1 " + text +
                 "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
  End(true);
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (char c : value) out += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;  // prevents header injection
  out += "\r\n";
}

void Http1Session::SendHead(Response::Batch& batch) {
  std::string out =
      "HTTP/1.1 " + std::to_string(batch.status) + " " + std::string(StatusText(batch.status)) + "\r\n";
  bool has_body = batch.status >= 200 && batch.status != 204 && batch.status != 304;
  for (const auto& [name, value] : batch.headers) {
    if (EqualsIgnoreCase(name, "Content-Length") || EqualsIgnoreCase(name, "Transfer-Encoding")) continue;
    if (EqualsIgnoreCase(name, "Connection") && EqualsIgnoreCase(value, "close")) {
      keep_alive_ = false;
      continue;
    }
    AppendHeader(out, name, value);
  }
  if (!batch.headers.Has("Date")) AppendHeader(out, "Date", HttpDate());
  chunked_ = false;
  if (batch.content_length) {
    if (has_body) AppendHeader(out, "Content-Length", std::to_string(*batch.content_length));
  } else if (http10_) {
    keep_alive_ = false;  // closing the connection ends the body
  } else if (has_body) {
    chunked_ = true;
    AppendHeader(out, "Transfer-Encoding", "chunked");
  }
  if (core_->draining || stream_) keep_alive_ = false;  // a response may come before the end of the request
  if (!keep_alive_) AppendHeader(out, "Connection", "close");
  if (keep_alive_ && http10_) AppendHeader(out, "Connection", "keep-alive");
  out += "\r\n";
  channel_->Send(std::move(out));
  if (!has_body) is_head_request_ = true;
}

void Http1Session::Deliver(const std::shared_ptr<Response>& response) {
  if (response != current_ || ended_) return;
  Response::Batch batch = response->Take();
  if (batch.head) SendHead(batch);
  if (!is_head_request_) {
    static constexpr char kHex[] = "0123456789abcdef";
    for (auto& piece : batch.data) {
      if (chunked_) {
        std::string size;
        for (int shift = 60; shift >= 0; shift -= 4) {
          size_t digit = (piece->size() >> shift) & 15;
          if (digit || !size.empty()) size += kHex[digit];
        }
        channel_->Send(size + "\r\n");
      }
      channel_->Send(std::move(piece));
      if (chunked_) channel_->Send("\r\n");
    }
    if (batch.finished && chunked_) channel_->Send("0\r\n\r\n");
  }
  if (batch.abandoned) return End(false);
  finishing_ = batch.finished;
  channel_->Flush();
}

void Http1Session::ResponseDone() {
  finishing_ = false;
  auto response = std::exchange(current_, nullptr);
  response->Complete();
  if (!keep_alive_ || core_->draining || stream_) return End(true);
  AwaitRequest();
  channel_->ResumeReading();
  if (!in_.empty()) ParsePending();
}

void Http1Session::End(bool gracefully) {
  if (std::exchange(ended_, true)) return;
  auto self = shared_from_this();
  timer_.reset();
  if (gracefully) {
    channel_->CloseGracefully();
  } else {
    channel_->Close();
  }
  if (auto response = std::exchange(current_, nullptr)) response->Complete();
  if (auto stream = std::exchange(stream_, nullptr)) {
    stream->Fail(Error(Code::kCancelled, "the client has gone before its request was complete"));
  }
  core_->Remove(self);
}

Result<std::unique_ptr<Stream>> Http1Session::UpgradeResponse(const std::shared_ptr<Response>& response,
                                                              Headers headers) {
  std::string head = "HTTP/1.1 101 Switching Protocols\r\n";
  for (const auto& [name, value] : headers) AppendHeader(head, name, value);
  head += "\r\n";
  auto stream = std::make_shared<StreamCore>(channel_);
  channel_->loop().Post([self = shared_from_this(), response, stream, head = std::move(head)]() mutable {
    if (self->ended_ || self->current_ != response) {
      return stream->Fail(Error(Code::kCancelled, "upgrade: the client has gone"));
    }
    self->ended_ = true;
    self->timer_.reset();
    self->current_.reset();
    auto upgraded = std::make_shared<UpgradedConnection>(stream);
    self->core_->Add(upgraded);
    self->core_->Remove(self);
    self->channel_->Send(std::move(head));
    std::weak_ptr<UpgradedConnection> weak = upgraded;
    stream->Begin(std::exchange(self->in_, {}), [core = self->core_, weak] {
      if (auto held = weak.lock()) core->Remove(held);
    });
    self->channel_->Flush();
    response->Complete();
  });
  return MakeStream(std::move(stream));
}

}  // namespace

void StartHttp1(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel, Origin origin) {
  std::make_shared<Http1Session>(std::move(core), std::move(channel), std::move(origin))->Begin();
}

bool SetTarget(ServerRequest& request, std::string_view target) {
  size_t scheme = target.find("://");
  if (scheme != std::string_view::npos && !target.empty() && target[0] != '/') {
    size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (target.empty() || (target[0] != '/' && target != "*")) return false;
  size_t question = target.find('?');
  request.raw_path = target.substr(0, question);
  if (question != std::string_view::npos) request.raw_query = target.substr(question + 1);
  request.path = PercentDecode(request.raw_path);
  request.query = Query::Parse(request.raw_query);
  return true;
}

}  // namespace keelson::http
