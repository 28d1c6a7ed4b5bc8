#include "controlplane/apiserver/local_transport.h"

#include <deque>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/percent.h"

namespace keelson::apiserver {
namespace {

using Bytes = std::shared_ptr<const std::string>;
using std::chrono::milliseconds;

// The response so far. Shared by writer and reader, either of which may end first.
struct Exchange {
  Mutex mutex;
  CondVar changed;
  int status KEELSON_GUARDED_BY(mutex) = 0;
  http::Headers headers KEELSON_GUARDED_BY(mutex);
  std::deque<Bytes> body KEELSON_GUARDED_BY(mutex);
  size_t queued KEELSON_GUARDED_BY(mutex) = 0;
  bool finished KEELSON_GUARDED_BY(mutex) = false;  // the response is complete
  bool closed KEELSON_GUARDED_BY(mutex) = false;    // writer or reader is gone
  std::vector<std::function<void()>> on_close KEELSON_GUARDED_BY(mutex);
  std::function<void()> readable KEELSON_GUARDED_BY(mutex);

  // Ends the exchange; callbacks run without the lock.
  void Close(bool complete) KEELSON_EXCLUDES(mutex) {
    std::vector<std::function<void()>> callbacks;
    {
      MutexLock lock(mutex);
      if (complete) finished = true;
      closed = true;
      callbacks.swap(on_close);
      changed.notify_all();
    }
    for (const auto& callback : callbacks) callback();
    TellReader();
  }

  void TellReader() KEELSON_EXCLUDES(mutex) {
    std::function<void()> tell;
    {
      MutexLock lock(mutex);
      tell = readable;
    }
    if (tell) tell();
  }
};

class LocalWriter : public http::ResponseWriter {
 public:
  explicit LocalWriter(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~LocalWriter() override { exchange_->Close(false); }

  void Reply(int status, http::Headers headers, std::string body) override {
    ReplyShared(status, std::move(headers), {std::make_shared<const std::string>(std::move(body))});
  }
  void ReplyShared(int status, http::Headers headers, std::vector<Bytes> body) override {
    Start(status, std::move(headers));
    {
      MutexLock lock(exchange_->mutex);
      for (Bytes& piece : body) Push(std::move(piece));
    }
    Finish();
  }
  void Start(int status, http::Headers headers) override {
    MutexLock lock(exchange_->mutex);
    exchange_->status = status;
    exchange_->headers = std::move(headers);
    exchange_->changed.notify_all();
  }
  bool Write(Bytes data) override {
    {
      MutexLock lock(exchange_->mutex);
      if (exchange_->closed) return false;
      Push(std::move(data));
      exchange_->changed.notify_all();
    }
    exchange_->TellReader();
    return true;
  }
  void Finish() override { exchange_->Close(true); }
  size_t queued_bytes() const override {
    MutexLock lock(exchange_->mutex);
    return exchange_->queued;
  }
  void OnClose(std::function<void()> callback) override {
    {
      MutexLock lock(exchange_->mutex);
      if (!exchange_->closed) {
        exchange_->on_close.push_back(std::move(callback));
        return;
      }
    }
    callback();
  }
  bool closed() const override {
    MutexLock lock(exchange_->mutex);
    return exchange_->closed;
  }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers) override {
    return Error(Code::kBadRequest, "requests inside the process cannot change protocol");
  }

 private:
  void Push(Bytes piece) KEELSON_REQUIRES(exchange_->mutex) {
    if (piece->empty()) return;
    exchange_->queued += piece->size();
    exchange_->body.push_back(std::move(piece));
  }

  const std::shared_ptr<Exchange> exchange_;
};

std::shared_ptr<const http::ServerRequest> ToServerRequest(const client::ApiRequest& from,
                                                           const std::string& user_agent) {
  auto request = std::make_shared<http::ServerRequest>();
  request->method = from.method;
  auto question = from.target.find('?');
  request->raw_path = from.target.substr(0, question);
  if (question != std::string::npos) request->raw_query = from.target.substr(question + 1);
  request->path = PercentDecode(request->raw_path);
  request->query = http::Query::Parse(request->raw_query);
  if (!from.content_type.empty()) request->headers.Add("Content-Type", from.content_type);
  if (!from.accept.empty()) request->headers.Add("Accept", from.accept);
  if (!user_agent.empty()) request->headers.Add("User-Agent", user_agent);
  request->body = from.body;
  request->remote_address = "local";
  return request;
}

// Waits until `done` holds; false after `timeout` (max(): never) or on `stop`.
template <typename Predicate>
bool Await(Exchange& exchange, std::stop_token stop, milliseconds timeout, Predicate done)
    KEELSON_REQUIRES(exchange.mutex) {
  if (timeout == milliseconds::max()) return exchange.changed.wait(exchange.mutex, stop, done);
  return exchange.changed.wait_for(exchange.mutex, stop, timeout, done);
}

Error Interrupted(std::stop_token stop) {
  if (stop.stop_requested()) return Error(Code::kCancelled, "the request was cancelled");
  return Error(Code::kTimeout, "the API server did not answer in time");
}

class LocalStream : public client::ApiStream {
 public:
  explicit LocalStream(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~LocalStream() override {
    OnReadable(nullptr);
    exchange_->Close(false);
  }

  Result<std::string> Read(std::stop_token stop, milliseconds idle) override {
    MutexLock lock(exchange_->mutex);
    bool some = Await(*exchange_, stop, idle, [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
      return !exchange_->body.empty() || exchange_->closed;
    });
    if (!some) return Interrupted(stop);
    std::string out;
    while (!exchange_->body.empty()) {
      out += *exchange_->body.front();
      exchange_->body.pop_front();
    }
    exchange_->queued = 0;
    return out;
  }

  void OnReadable(std::function<void()> readable) override {
    bool already = false;
    {
      MutexLock lock(exchange_->mutex);
      exchange_->readable = std::move(readable);
      already = exchange_->readable && (!exchange_->body.empty() || exchange_->closed);
    }
    if (already) exchange_->TellReader();
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

class LocalTransport : public client::Transport {
 public:
  LocalTransport(http::Handler handler, std::string user_agent)
      : handler_(std::move(handler)), user_agent_(std::move(user_agent)) {}

  Result<client::ApiResponse> Do(const client::ApiRequest& request, milliseconds timeout,
                                 std::stop_token stop) override {
    auto exchange = std::make_shared<Exchange>();
    handler_(ToServerRequest(request, user_agent_), std::make_shared<LocalWriter>(exchange));
    return Collect(*exchange, timeout, stop);
  }

  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override {
    auto exchange = std::make_shared<Exchange>();
    handler_(ToServerRequest(request, user_agent_), std::make_shared<LocalWriter>(exchange));
    int status = 0;
    {
      MutexLock lock(exchange->mutex);
      bool begun = Await(*exchange, stop, milliseconds::max(), [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
        return exchange->status != 0 || exchange->closed;
      });
      if (!begun) return Interrupted(stop);
      status = exchange->status;
    }
    if (status >= 200 && status < 300) return std::unique_ptr<client::ApiStream>(new LocalStream(exchange));
    KEELSON_ASSIGN_OR_RETURN(client::ApiResponse response,
                             Collect(*exchange, std::chrono::seconds(30), stop));
    return ToError(response);
  }

 private:
  static Result<client::ApiResponse> Collect(Exchange& exchange, milliseconds timeout, std::stop_token stop) {
    MutexLock lock(exchange.mutex);
    bool over =
        Await(exchange, stop, timeout, [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return exchange.closed; });
    if (!over) return Interrupted(stop);
    if (!exchange.finished) return Error(Code::kUnavailable, "the API server gave up on the request");
    client::ApiResponse response;
    response.status = exchange.status;
    response.content_type = exchange.headers.Get("Content-Type");
    response.body.reserve(exchange.queued);
    for (const Bytes& piece : exchange.body) response.body += *piece;
    return response;
  }

  static Error ToError(const client::ApiResponse& response) {
    metav1::Status status;
    bool protobuf = response.body.compare(0, api::kProtobufMagic.size(), api::kProtobufMagic) == 0;
    Result<> decoded =
        protobuf ? api::DecodeProtobuf(response.body, status) : api::DecodeJson(response.body, status);
    if (decoded && status.code() != 0) return api::FromStatus(status);
    return Error(CodeOf(response.status, ""), response.body);
  }

  const http::Handler handler_;
  const std::string user_agent_;
};

}  // namespace

std::shared_ptr<client::Transport> NewLocalTransport(http::Handler handler, std::string user_agent) {
  return std::make_shared<LocalTransport>(std::move(handler), std::move(user_agent));
}

}  // namespace keelson::apiserver
