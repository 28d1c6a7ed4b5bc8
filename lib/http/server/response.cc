#include "lib/http/server/response.h"

#include <time.h>

namespace keelson::http {
namespace {

class Writer final : public ResponseWriter {
 public:
  explicit Writer(std::shared_ptr<Response> response) : response_(std::move(response)) {}
  ~Writer() override { response_->Abandon(); }

  void Reply(int status, Headers headers, std::string body) override {
    std::vector<std::shared_ptr<const std::string>> parts;
    if (!body.empty()) parts.push_back(std::make_shared<const std::string>(std::move(body)));
    ReplyShared(status, std::move(headers), std::move(parts));
  }
  void ReplyShared(int status, Headers headers,
                   std::vector<std::shared_ptr<const std::string>> body) override {
    size_t size = 0;
    for (const auto& part : body) size += part->size();
    response_->Head(status, std::move(headers), size, std::move(body));
  }
  void Start(int status, Headers headers) override {
    response_->Head(status, std::move(headers), std::nullopt, {});
  }
  bool Write(std::shared_ptr<const std::string> data) override { return response_->Write(std::move(data)); }
  void Finish() override { response_->Finish(); }
  size_t queued_bytes() const override { return response_->queued_bytes(); }
  void OnClose(std::function<void()> callback) override { response_->OnClose(std::move(callback)); }
  bool closed() const override { return response_->closed(); }
  Result<std::unique_ptr<Stream>> Upgrade(Headers headers) override {
    return response_->Upgrade(std::move(headers));
  }

 private:
  std::shared_ptr<Response> response_;
};

}  // namespace

std::shared_ptr<ResponseWriter> MakeWriter(std::shared_ptr<Response> response) {
  return std::make_shared<Writer>(std::move(response));
}

void Response::Wake(bool was_awake, bool in_turn) {
  if (!was_awake) session_->WakeResponse(shared_from_this(), in_turn);
}

bool Response::Head(int status, Headers headers, std::optional<size_t> content_length,
                    std::vector<std::shared_ptr<const std::string>> body) {
  bool was_awake;
  {
    MutexLock lock(mutex_);
    if (started_ || closed_) return false;
    started_ = true;
    status_ = status;
    headers_ = std::move(headers);
    content_length_ = content_length;
    data_ = std::move(body);
    if (content_length) {
      finished_ = true;
      pending_ = *content_length;
    }
    was_awake = std::exchange(awake_, true);
  }
  Wake(was_awake, false);
  return true;
}

bool Response::Write(std::shared_ptr<const std::string> data) {
  bool was_awake;
  {
    MutexLock lock(mutex_);
    if (closed_) return false;
    if (!started_ || finished_ || data->empty()) return true;
    pending_ += data->size();
    data_.push_back(std::move(data));
    was_awake = std::exchange(awake_, true);
  }
  Wake(was_awake, true);
  return true;
}

void Response::Finish() {
  bool was_awake;
  {
    MutexLock lock(mutex_);
    if (finished_ || closed_ || !started_) return;
    finished_ = true;
    was_awake = std::exchange(awake_, true);
  }
  Wake(was_awake, true);
}

void Response::Abandon() {
  bool was_awake;
  {
    MutexLock lock(mutex_);
    if (finished_ || closed_) return;
    abandoned_ = true;
    was_awake = std::exchange(awake_, true);
  }
  Wake(was_awake, true);
}

Response::Batch Response::Take() {
  MutexLock lock(mutex_);
  awake_ = false;
  Batch batch;
  if (started_ && !head_taken_) {
    head_taken_ = batch.head = true;
    batch.status = status_;
    batch.headers = std::move(headers_);
    batch.content_length = content_length_;
  }
  batch.data = std::move(data_);
  data_.clear();
  pending_ = 0;
  batch.finished = finished_;
  batch.abandoned = abandoned_;
  return batch;
}

void Response::Complete() {
  std::vector<std::function<void()>> callbacks;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    callbacks.swap(callbacks_);
  }
  for (auto& callback : callbacks) callback();
}

bool Response::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void Response::OnClose(std::function<void()> callback) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

size_t Response::queued_bytes() const {
  size_t behind = session_->BytesBehind(*this);
  MutexLock lock(mutex_);
  return pending_ + behind;
}

Result<std::unique_ptr<Stream>> Response::Upgrade(Headers headers) {
  {
    MutexLock lock(mutex_);
    if (closed_) return Error(Code::kCancelled, "upgrade: the client has gone");
    if (started_) return Error(Code::kBadRequest, "upgrade: the response has begun");
    started_ = head_taken_ = finished_ = true;
  }
  return session_->UpgradeResponse(shared_from_this(), std::move(headers));
}

std::string_view StatusText(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

const std::string& HttpDate() {
  static thread_local time_t made = 0;
  static thread_local std::string text;
  time_t now = time(nullptr);
  if (now != made) {
    tm utc;
    gmtime_r(&now, &utc);
    char buffer[64];
    strftime(buffer, sizeof buffer, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    text = buffer;
    made = now;
  }
  return text;
}

}  // namespace keelson::http
