#include "controlplane/apiserver/endpoints/forwarding.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/response.h"
#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

// A client may be this far behind before the other server has to wait.
constexpr size_t kMaxQueued = 1u << 20;
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr int kSwitching = 101, kBadGateway = 502, kUnavailable = 503;

bool IsRedirect(int status, const http::Headers& headers) {
  return status >= 300 && status < 400 && !headers.Get("Location").empty();
}

}  // namespace

bool IsHopHeader(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames = {"Connection",
                                                       "Keep-Alive",
                                                       "Proxy-Authenticate",
                                                       "Proxy-Authorization",
                                                       "Proxy-Connection",
                                                       "Te",
                                                       "Trailer",
                                                       "Transfer-Encoding",
                                                       "Upgrade",
                                                       "Content-Length"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view one) { return EqualsIgnoreCase(name, one); });
}

void ReplyProxyError(Context& context, int status, std::string_view message) {
  ReplyText(context, status, "text/plain; charset=utf-8", std::string(message) + "\n");
}

Forwarding::Forwarding(std::shared_ptr<Context> context, std::shared_ptr<http::Client> client,
                       Options options)
    : context_(std::move(context)), client_(std::move(client)), options_(std::move(options)) {}

void Forwarding::Start(http::ClientRequest request) {
  loop_->Post([self = shared_from_this(), request = std::move(request)]() mutable {
    self->call_ =
        self->client_->Send(std::move(request), self->options_.upgrade, self->options_.timeout, self);
    self->context_->writer->OnClose([weak = self->weak_from_this(), loop = self->loop_] {
      // The last reference must go on the loop's thread.
      if (auto held = weak.lock()) loop->Post([held = std::move(held)] { held->ClientGone(); });
    });
  });
}

void Forwarding::OnHead(int status, const http::Headers& headers) {
  if (over_) return;
  if (status == kSwitching) {
    upgrade_headers_ = headers;
    return;
  }
  begun_ = true;
  if (options_.reject_redirects && IsRedirect(status, headers)) {
    refused_ = true;
    return ReplyProxyError(*context_, kBadGateway,
                           "the backend attempted to redirect this request, which is not permitted");
  }
  http::Headers out;
  for (const auto& [name, value] : headers) {
    if (!IsHopHeader(name)) out.Add(name, value);
  }
  if (options_.rewriter) options_.rewriter->OnHead(out);
  context_->status = status;
  context_->writer->Start(status, std::move(out));
}

bool Forwarding::OnBody(std::string_view bytes) {
  if (over_ || refused_) return false;
  std::string piece = options_.rewriter ? options_.rewriter->OnBody(bytes) : std::string(bytes);
  if (piece.empty()) return false;
  if (!context_->writer->Write(std::make_shared<const std::string>(std::move(piece)))) {
    loop_->Post([self = shared_from_this()] { self->ClientGone(); });
    return true;
  }
  if (context_->writer->queued_bytes() <= kMaxQueued) return false;
  AwaitReader();
  return true;
}

// There is no notice of what a client has read.
void Forwarding::AwaitReader() {
  if (!timer_) timer_ = std::make_unique<event::Timer>(*loop_);
  timer_->Start(kLookAgain, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self || self->over_) return;
    if (self->context_->writer->queued_bytes() > kMaxQueued / 2) return self->AwaitReader();
    self->call_->Resume();
  });
}

void Forwarding::OnEnd() {
  if (over_) return;
  if (!refused_) {
    std::string rest = options_.rewriter ? options_.rewriter->OnEnd() : "";
    if (!rest.empty()) context_->writer->Write(std::make_shared<const std::string>(std::move(rest)));
    context_->writer->Finish();
  }
  Finish();
}

void Forwarding::OnUpgraded(std::unique_ptr<http::Stream> stream) {
  if (over_) return;
  context_->status = kSwitching;
  Result<std::unique_ptr<http::Stream>> client = context_->writer->Upgrade(std::move(upgrade_headers_));
  if (client) http::Splice(std::move(*client), std::move(stream));
  Finish();
}

void Forwarding::OnFail(const Error& error) {
  if (over_) return;
  // The client of the other server notices by itself that a connection is broken, or that there is none.
  if (!begun_ && options_.on_silence && error.Is(Code::kTimeout)) options_.on_silence();
  if (!begun_ && error.Is(Code::kTimeout) && options_.timeout != std::chrono::milliseconds::max()) {
    ReplyError(*context_,
               Error(Code::kTimeout, "Timeout: request did not complete within the allotted timeout"));
  } else if (!begun_) {
    const std::string message = fmt::format("error trying to reach service: {}", error.message());
    if (options_.status_errors) {
      ReplyError(*context_, Error(Code::kUnavailable, message));
    } else {
      ReplyProxyError(*context_, kUnavailable, message);
    }
  }
  // A response that has begun is cut: the writer goes without its end.
  Finish();
}

void Forwarding::ClientGone() {
  if (over_) return;
  call_->Cancel();
  Finish();
}

void Forwarding::Finish() {
  over_ = true;
  timer_.reset();
  if (auto done = std::move(options_.done)) done();
  options_ = {};
  context_.reset();
  client_.reset();
  call_.reset();
}

}  // namespace keelson::apiserver
