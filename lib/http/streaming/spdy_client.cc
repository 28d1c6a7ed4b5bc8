#include "lib/http/streaming/spdy_client.h"

#include <algorithm>
#include <future>

namespace keelson::http {

Result<std::unique_ptr<SpdyClient>> SpdyClient::Dial(const StreamingTarget& target, const char* protocol) {
  const size_t scheme = target.url.find("://");
  if (scheme == std::string::npos) return Error(Code::kBadRequest, "not a URL: \"" + target.url + "\"");
  const size_t slash = target.url.find('/', scheme + 3);
  ClientOptions options;
  options.base_url = target.url.substr(0, slash);
  options.tls = target.tls;
  options.http2 = false;
  options.connect_timeout = target.timeout;
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Create(std::move(options)));
  ClientRequest request;
  request.method = "POST";
  request.target = slash == std::string::npos ? "/" : target.url.substr(slash);
  request.headers = {
      {"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", protocol}};
  auto upgraded = client->Upgrade(request, target.timeout);
  if (!upgraded) return upgraded.error().Wrap("unable to upgrade connection");
  std::unique_ptr<SpdyClient> out(new SpdyClient(std::move(client), std::move(upgraded->stream)));
  SpdyClient* self = out.get();
  SpdyParser::Events events;
  events.on_reply = [self](uint32_t id) {
    MutexLock lock(self->mutex_);
    if (auto at = self->open_.find(id); at != self->open_.end()) at->second = true;
    self->changed_.notify_all();
  };
  events.on_data = [self](uint32_t id, std::string_view bytes, bool fin) {
    (*self->on_data_)(id, bytes, fin);
  };
  events.on_reset = [self](uint32_t id) { (*self->on_data_)(id, {}, true); };
  events.on_ping = [self](uint32_t id) {
    if (id % 2 == 0) SpdyWriter::Ping(self->answers_, id);
  };
  events.on_goaway = [] {};
  out->parser_ = std::make_unique<SpdyParser>(std::move(events));
  return out;
}

Result<> SpdyClient::Write(std::string bytes) {
  MutexLock lock(write_mutex_);
  std::promise<Result<>> done;
  stream_->AsyncWrite(std::move(bytes), [&done](Result<> result) { done.set_value(std::move(result)); });
  return done.get_future().get();
}

Result<uint32_t> SpdyClient::Open(const Headers& headers) {
  const uint32_t id = next_id_;
  next_id_ += 2;
  {
    MutexLock lock(mutex_);
    open_[id] = false;
  }
  std::string out;
  writer_.SynStream(out, id, headers);
  KEELSON_RETURN_IF_ERROR(Write(std::move(out)));
  return id;
}

Result<bool> SpdyClient::Pump(
    const std::function<void(uint32_t stream, std::string_view bytes, bool fin)>& on_data) {
  std::promise<Result<std::string>> done;
  stream_->AsyncRead([&done](Result<std::string> bytes) { done.set_value(std::move(bytes)); });
  Result<std::string> bytes = done.get_future().get();
  if (!bytes || bytes->empty()) {
    Close();
    if (!bytes) return bytes.error();
    return false;
  }
  on_data_ = &on_data;
  Result<> fed = parser_->Feed(*bytes);
  on_data_ = nullptr;
  if (!fed) {
    Close();
    return fed.error();
  }
  if (!answers_.empty()) KEELSON_RETURN_IF_ERROR(Write(std::exchange(answers_, {})));
  return true;
}

Result<> SpdyClient::Send(uint32_t stream, std::string_view bytes, bool fin) {
  {
    MutexLock lock(mutex_);
    auto taken = [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
      return std::all_of(open_.begin(), open_.end(), [](const auto& item) { return item.second; });
    };
    while (!closed_ && !taken()) changed_.wait(mutex_);
    if (closed_) return Error(Code::kCancelled, "the connection is over");
  }
  std::string out;
  SpdyWriter::Data(out, stream, bytes, fin);
  return Write(std::move(out));
}

void SpdyClient::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  stream_->Close();
}

}  // namespace keelson::http
