#include "lib/client/watch.h"

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/client/wire.h"

namespace keelson::client {
namespace {

constexpr size_t kMaxFrame = 64u << 20;
// Servers send a bookmark about once a minute; a connection that is silent for longer is dead.
constexpr std::chrono::milliseconds kIdle = std::chrono::seconds(150);

class FramedWatchStream : public WatchStream {
 public:
  FramedWatchStream(std::unique_ptr<ApiStream> stream, std::stop_token stop, JsonObjects form)
      : stream_(std::move(stream)), stop_(std::move(stop)), form_(form) {}

  Result<WatchEvent> Next(std::stop_token stop) override {
    for (;;) {
      KEELSON_ASSIGN_OR_RETURN(std::optional<std::string_view> frame, frames_.Next());
      if (frame) return DecodeWatchEvent(*frame, form_);
      // Two tokens can end the call: the client's own and the caller's.
      std::stop_source either;
      std::stop_callback on_client(stop_, [&] { either.request_stop(); });
      std::stop_callback on_caller(stop, [&] { either.request_stop(); });
      Result<std::string> bytes = stream_->Read(either.get_token(), kIdle);
      if (!bytes) {
        if (bytes.error().Is(Code::kCancelled)) return bytes.error();
        return Error(Code::kUnavailable, bytes.error().Wrap("watch").message());
      }
      if (bytes->empty()) return Error(Code::kUnavailable, "watch: stream ended");
      frames_.Append(*bytes);
    }
  }

 private:
  std::unique_ptr<ApiStream> stream_;
  std::stop_token stop_;
  const JsonObjects form_;
  FrameReader frames_;
};

}  // namespace

void FrameReader::Append(std::string_view bytes) {
  buffer_.erase(0, read_);
  read_ = 0;
  buffer_.append(bytes);
}

Result<std::optional<std::string_view>> FrameReader::Next() {
  std::string_view rest = std::string_view(buffer_).substr(read_);
  if (IsJson(rest)) return NextLine(rest);
  if (rest.size() < 4) return std::optional<std::string_view>();
  uint32_t length = 0;
  for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(rest[i]);
  if (length > kMaxFrame) return Error(Code::kTooLarge, "watch: frame is too large");
  if (rest.size() - 4 < length) return std::optional<std::string_view>();
  read_ += 4 + length;
  return std::optional<std::string_view>(rest.substr(4, length));
}

Result<std::optional<std::string_view>> FrameReader::NextLine(std::string_view rest) {
  const size_t end = rest.find('\n');
  if (end != std::string_view::npos) {
    read_ += end + 1;
    return std::optional<std::string_view>(rest.substr(0, end));
  }
  if (rest.size() > kMaxFrame) return Error(Code::kTooLarge, "watch: line is too long");
  return std::optional<std::string_view>();
}

Result<WatchEvent::Type> WatchEventType(std::string_view name) {
  if (name == "ADDED") return WatchEvent::Type::kAdded;
  if (name == "MODIFIED") return WatchEvent::Type::kModified;
  if (name == "DELETED") return WatchEvent::Type::kDeleted;
  if (name == "BOOKMARK") return WatchEvent::Type::kBookmark;
  return Error(Code::kInternal, "watch: unknown event type " + std::string(name));
}

Result<WatchEvent> DecodeWatchEvent(std::string_view frame, JsonObjects form) {
  if (IsJson(frame)) return DecodeJsonWatchEvent(form, frame);
  // Upstream sends the event bare; accept an enveloped one too.
  if (frame.substr(0, api::kProtobufMagic.size()) == api::kProtobufMagic) {
    KEELSON_ASSIGN_OR_RETURN(api::Envelope outer, api::OpenEnvelope(frame));
    frame = outer.raw;
  }
  std::string_view type, object;
  KEELSON_RETURN_IF_ERROR(ForEachField(frame, [&](int number, std::string_view payload) -> Result<> {
    if (number == 1) type = payload;
    if (number != 2) return {};
    return ForEachField(payload, [&](int inner, std::string_view raw) -> Result<> {
      if (inner == 1) object = raw;
      return {};
    });
  }));
  KEELSON_ASSIGN_OR_RETURN(api::Envelope envelope, api::OpenEnvelope(object));
  if (type == "ERROR") {
    metav1::Status status;
    KEELSON_RETURN_IF_ERROR(api::DecodeRaw(envelope.raw, status));
    return api::FromStatus(status);
  }
  WatchEvent event;
  KEELSON_ASSIGN_OR_RETURN(event.type, WatchEventType(type));
  event.raw = std::string(envelope.raw);
  return event;
}

std::string EncodeWatchFrame(std::string_view type, std::string_view enveloped_object) {
  metav1::WatchEvent event;
  event.set_type(std::string(type));
  event.mutable_object()->set_raw(std::string(enveloped_object));
  std::string frame(4, '\0');
  event.AppendToString(&frame);
  uint32_t length = static_cast<uint32_t>(frame.size() - 4);
  for (int i = 3; i >= 0; --i, length >>= 8) frame[i] = static_cast<char>(length & 0xff);
  return frame;
}

std::unique_ptr<WatchStream> NewWatchStream(std::unique_ptr<ApiStream> stream, std::stop_token stop,
                                            JsonObjects form) {
  return std::make_unique<FramedWatchStream>(std::move(stream), std::move(stop), form);
}

}  // namespace keelson::client
