#include <fmt/format.h>

#include <utility>

#include "lib/http/client/core.h"
#include "lib/http/http1_parser.h"

namespace keelson::http {
namespace {

constexpr auto kIdleFor = std::chrono::seconds(90);
constexpr size_t kMaxQueued = 256 << 10;

class Http1Connection final : public ClientConnection,
                              public Channel::Receiver,
                              public std::enable_shared_from_this<Http1Connection> {
 public:
  Http1Connection(std::shared_ptr<ClientCore> core, std::shared_ptr<Channel> channel)
      : core_(std::move(core)),
        channel_(std::move(channel)),
        timer_(channel_->loop()),
        parser_(Http1Parser::Role::kResponse, {}, [this](std::string_view piece) { Body(piece); }) {}

  void Begin() { channel_->SetReceiver(shared_from_this()); }
  bool HasRoom() const override { return !current_ && !closed_; }
  bool shared() const override { return false; }
  void Submit(std::shared_ptr<Exchange> exchange) override;
  void Close() override { Fail(Error(Code::kCancelled, "client closed")); }
  void Abort(Exchange& exchange) override {
    if (current_.get() != &exchange) return;
    current_.reset();
    End();
  }
  void Resume(Exchange& exchange, size_t) override {
    if (current_.get() == &exchange) channel_->ResumeReading();
  }

  void OnData(std::string_view bytes) override;
  void OnEnd(const Error* failure) override;
  void OnDrained() override { PumpBody(); }

 private:
  void FollowBody();
  void PumpBody();
  void Head();
  void Body(std::string_view piece);
  void Complete(std::string_view rest);
  void Fail(const Error& error);
  void End();

  std::shared_ptr<ClientCore> core_;
  std::shared_ptr<Channel> channel_;
  event::Timer timer_;
  Http1Parser parser_;
  std::shared_ptr<Exchange> current_;
  std::string in_;  // an incomplete head
  int served_ = 0;
  bool head_given_ = false, closed_ = false;
  bool body_sent_ = true;  // of the request
};

std::string RequestHead(const Exchange& exchange, const Endpoint& endpoint) {
  const ClientRequest& request = exchange.request;
  std::string out = request.method + " " + request.target + " HTTP/1.1\r\n";
  if (!request.headers.Has("Host")) out += "Host: " + endpoint.authority + "\r\n";
  for (const auto& [name, value] : request.headers) {
    out.append(name).append(": ");
    for (char c : value) out += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
    out += "\r\n";
  }
  if (exchange.upgrade && !request.headers.Has("Connection")) out += "Connection: Upgrade\r\n";
  if (request.body_stream) {
    if (!request.headers.Has("Content-Length")) out += "Transfer-Encoding: chunked\r\n";
    return out + "\r\n";
  }
  bool may_have_body = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if ((may_have_body || !request.body.empty()) && !request.headers.Has("Content-Length")) {
    out += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  }
  return out + "\r\n";
}

void Http1Connection::Submit(std::shared_ptr<Exchange> exchange) {
  timer_.Cancel();
  current_ = std::move(exchange);
  current_->carrier = weak_from_this();
  parser_.Reset();
  head_given_ = false;
  if (current_->request.method == "HEAD") parser_.SkipBody();
  channel_->Send(RequestHead(*current_, core_->endpoint()));
  // The exchange owns the body; it lives as long as the queue needs it.
  if (!current_->request.body.empty()) {
    channel_->Send(std::shared_ptr<const std::string>(current_, &current_->request.body));
  }
  channel_->Flush();
  body_sent_ = !current_->request.body_stream;
  if (!body_sent_) FollowBody();
}

void Http1Connection::FollowBody() {
  current_->request.body_stream->OnReadable(
      [weak = weak_from_this(), loop = core_->loop(), exchange = current_.get()] {
        loop->Post([weak, exchange] {
          auto self = weak.lock();
          if (self && self->current_.get() == exchange) self->PumpBody();
        });
      });
}

// Sends what has come of a streamed body, unless the server is behind.
void Http1Connection::PumpBody() {
  if (body_sent_ || !current_ || channel_->queued() > kMaxQueued) return;
  BodyStream::Batch batch = current_->request.body_stream->Take();
  const bool chunked = !current_->request.headers.Has("Content-Length");
  for (auto& piece : batch.pieces) {
    if (chunked) channel_->Send(fmt::format("{:x}\r\n", piece->size()));
    channel_->Send(std::move(piece));
    if (chunked) channel_->Send("\r\n");
  }
  if (batch.failure) return Fail(*batch.failure);
  body_sent_ = batch.finished;
  if (batch.finished && chunked) channel_->Send("0\r\n\r\n");
  channel_->Flush();
}

void Http1Connection::Head() {
  if (head_given_) return;
  head_given_ = true;
  current_->OnHead(parser_.head().status, parser_.head().headers);
}

void Http1Connection::Body(std::string_view piece) {
  if (!current_) return;
  Head();
  if (current_->OnBody(piece)) channel_->PauseReading();
}

void Http1Connection::OnData(std::string_view bytes) {
  if (!current_) return End();  // no request is waiting for this
  std::string joined;
  if (!in_.empty()) {
    joined = std::exchange(in_, {}) + std::string(bytes);
    bytes = joined;
  }
  while (current_ && !bytes.empty()) {
    Result<size_t> taken = parser_.Feed(bytes);
    if (!taken) return Fail(Error(Code::kUnavailable, taken.error().message()));
    bytes.remove_prefix(*taken);
    if (parser_.head_done()) {
      int status = parser_.head().status;
      if (status >= 100 && status < 200 && !(status == 101 && current_->upgrade)) {
        parser_.Reset();  // interim response: the real one follows
        continue;
      }
      Head();
      if (parser_.done()) return Complete(bytes);
    }
    if (*taken == 0) break;
  }
  in_ = bytes;
}

void Http1Connection::Complete(std::string_view rest) {
  auto self = shared_from_this();
  auto exchange = std::exchange(current_, nullptr);
  ++served_;
  if (exchange->upgrade && parser_.head().status == 101) {
    closed_ = true;
    auto stream = std::make_shared<StreamCore>(channel_);
    stream->Begin(std::string(rest), {});
    core_->Gone(self);
    return exchange->OnUpgraded(std::move(stream));
  }
  bool keep = parser_.head().keep_alive && rest.empty() && !exchange->upgrade && body_sent_;
  exchange->OnEnd();
  if (!keep) return End();
  channel_->ResumeReading();  // to notice when the peer closes
  timer_.Start(kIdleFor, [this] { End(); });
  core_->Idle(self);
}

void Http1Connection::OnEnd(const Error* failure) {
  if (!current_) return End();
  if (!failure && parser_.started() && parser_.End()) {
    Head();
    auto exchange = std::exchange(current_, nullptr);
    exchange->OnEnd();
    return End();
  }
  Error error =
      failure ? *failure : Error(Code::kUnavailable, "connection closed before the response was complete");
  // The server had closed a kept connection before it saw the request. After a reset it may have seen it.
  const std::string& method = current_->request.method;
  bool harmless =
      method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" || method == "OPTIONS";
  if (served_ > 0 && !parser_.started() && (!failure || harmless)) {
    auto exchange = std::exchange(current_, nullptr);
    auto core = core_;
    End();
    return core->Retry(std::move(exchange), error);
  }
  Fail(error);
}

void Http1Connection::Fail(const Error& error) {
  if (auto exchange = std::exchange(current_, nullptr)) {
    exchange->OnFail(error.Wrap(exchange->request.method + " " + exchange->request.target));
  }
  End();
}

void Http1Connection::End() {
  if (std::exchange(closed_, true)) return;
  auto self = shared_from_this();
  timer_.Cancel();
  channel_->Close();
  core_->Gone(self);
}

}  // namespace

std::shared_ptr<ClientConnection> MakeHttp1Connection(std::shared_ptr<ClientCore> core,
                                                      std::shared_ptr<Channel> channel) {
  auto connection = std::make_shared<Http1Connection>(std::move(core), std::move(channel));
  connection->Begin();
  return connection;
}

}  // namespace keelson::http
