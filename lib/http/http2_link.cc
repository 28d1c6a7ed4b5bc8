#include "lib/http/http2_link.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/text.h"
#include "lib/http/message.h"

namespace keelson::http {
namespace {
constexpr size_t kHighWater = 256 << 10;
// Frames (except DATA) queued for a peer that does not read: several for each possible stream.
constexpr size_t kMaxFrames = 10000;
}  // namespace

void OutBody::Push(std::shared_ptr<const std::string> part) {
  if (part->empty()) return;
  size += part->size();
  parts.push_back(std::move(part));
}

void Http2Link::Create(decltype(&nghttp2_session_server_new2) role, nghttp2_session_callbacks* callbacks,
                       const nghttp2_option* options) {
  nghttp2_session_callbacks_set_send_data_callback(callbacks, SendBody);
  nghttp2_session* session = nullptr;
  if (role(&session, callbacks, this, options) != 0) abort();  // out of memory
  session_.reset(session);
}

nghttp2_data_provider Http2Link::Provider() {
  nghttp2_data_provider provider{};
  provider.source.ptr = this;
  provider.read_callback = ReadBody;
  return provider;
}

ssize_t Http2Link::ReadBody(nghttp2_session*, int32_t stream_id, uint8_t*, size_t length, uint32_t* flags,
                            nghttp2_data_source* source, void*) {
  OutBody* body = static_cast<Http2Link*>(source->ptr)->FindBody(stream_id);
  if (!body) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (body->size == 0 && !body->finished) return NGHTTP2_ERR_DEFERRED;
  size_t count = std::min(length, body->size);
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (count == body->size && body->finished) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(count);
}

int Http2Link::SendBody(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t length,
                        nghttp2_data_source*, void* user_data) {
  auto* self = static_cast<Http2Link*>(user_data);
  OutBody* body = self->FindBody(frame->hd.stream_id);
  if (!body || body->size < length) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  self->channel_->Send(std::string(reinterpret_cast<const char*>(head), 9));
  body->size -= length;
  for (size_t left = length; left > 0;) {
    auto& part = body->parts.front();
    size_t taken = std::min(left, part->size() - body->offset);
    self->channel_->Send(part, body->offset, taken);
    body->offset += taken;
    left -= taken;
    if (body->offset == part->size()) {
      body->parts.pop_front();
      body->offset = 0;
    }
  }
  if (body->on_sent) body->on_sent(length);
  return 0;
}

void Http2Link::OnData(std::string_view bytes) {
  if (ended_) return;
  inside_ = true;
  ssize_t n =
      nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  inside_ = false;
  if (n < 0) {
    Error error(Code::kUnavailable, std::string("HTTP/2: ") + nghttp2_strerror(static_cast<int>(n)));
    return Ended(&error);
  }
  Pump();
  if (!ended_ && nghttp2_session_get_outbound_queue_size(session_.get()) > kMaxFrames) {
    Error error(Code::kUnavailable, "HTTP/2: the peer asks and does not read");
    Ended(&error);
  }
}

void Http2Link::OnEnd(const Error* failure) {
  if (!ended_) Ended(failure);
}

void Http2Link::Pump() {
  if (ended_ || inside_) return;
  while (channel_->queued() < kHighWater) {
    const uint8_t* data = nullptr;
    inside_ = true;
    ssize_t n = nghttp2_session_mem_send(session_.get(), &data);
    inside_ = false;
    if (n < 0) {
      Error error(Code::kUnavailable, std::string("HTTP/2: ") + nghttp2_strerror(static_cast<int>(n)));
      return Ended(&error);
    }
    if (n == 0) break;
    channel_->Send(std::string(reinterpret_cast<const char*>(data), static_cast<size_t>(n)));
  }
  channel_->Flush();
  if (!ended_ && Exhausted()) Ended(nullptr);
}

bool Http2Link::Exhausted() const {
  return !nghttp2_session_want_read(session_.get()) && !nghttp2_session_want_write(session_.get()) &&
         channel_->queued() == 0;
}

void HeaderList::Add(std::string_view name, std::string_view value) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  std::string clean(value);
  for (char& c : clean) c = c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
  items_.emplace_back(std::move(lower), std::move(clean));
}

void HeaderList::AddAll(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    static constexpr std::string_view kForbidden[] = {"connection", "keep-alive",        "proxy-connection",
                                                      "upgrade",    "transfer-encoding", "host"};
    bool forbidden = std::any_of(std::begin(kForbidden), std::end(kForbidden),
                                 [&name = name](std::string_view f) { return EqualsIgnoreCase(name, f); });
    if (!forbidden) Add(name, value);
  }
}

const std::vector<nghttp2_nv>& HeaderList::get() {
  pairs_.clear();
  for (auto& [name, value] : items_) {
    pairs_.push_back({reinterpret_cast<uint8_t*>(name.data()), reinterpret_cast<uint8_t*>(value.data()),
                      name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  return pairs_;
}

}  // namespace keelson::http
