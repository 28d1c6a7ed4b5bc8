#include "lib/http/streaming/websocket_writer.h"

#include <utility>
#include <vector>

#include "lib/base/base64.h"
#include "lib/base/mutex.h"
#include "lib/http/streaming/channels.h"
#include "lib/http/streaming/websocket.h"

namespace keelson::http {
namespace {

constexpr uint16_t kNormalClosure = 1000, kProtocolError = 1002;

enum class Form { kText, kBytes, kBase64 };

class WebSocketWriter : public ResponseWriter, public std::enable_shared_from_this<WebSocketWriter> {
 public:
  WebSocketWriter(std::shared_ptr<ResponseWriter> writer, Headers handshake, Form form)
      : writer_(std::move(writer)), handshake_(std::move(handshake)), form_(form) {}

  void Reply(int status, Headers headers, std::string body) override {
    writer_->Reply(status, std::move(headers), std::move(body));
  }
  void ReplyShared(int status, Headers headers,
                   std::vector<std::shared_ptr<const std::string>> body) override {
    writer_->ReplyShared(status, std::move(headers), std::move(body));
  }

  void Start(int, Headers) override {
    Result<std::unique_ptr<Stream>> stream = writer_->Upgrade(std::move(handshake_));
    {
      MutexLock lock(mutex_);
      if (stream) stream_ = std::move(*stream);
      Pump();
    }
    if (!stream) return Close();
    Read();
  }

  bool Write(std::shared_ptr<const std::string> data) override {
    MutexLock lock(mutex_);
    if (closed_ || finished_) return false;
    if (form_ == Form::kBase64) {
      AppendWsFrame(queue_, WsOpcode::kText, "", EncodeBase64(*data));
    } else {
      AppendWsFrame(queue_, form_ == Form::kText ? WsOpcode::kText : WsOpcode::kBinary, "", *data);
    }
    Pump();
    return true;
  }

  void Finish() override { FinishWith(kNormalClosure); }

  size_t queued_bytes() const override {
    MutexLock lock(mutex_);
    return queue_.size() + in_flight_;
  }

  void OnClose(std::function<void()> callback) override {
    {
      MutexLock lock(mutex_);
      if (!closed_) {
        callbacks_.push_back(std::move(callback));
        return;
      }
    }
    callback();
  }

  bool closed() const override {
    MutexLock lock(mutex_);
    return closed_;
  }

  Result<std::unique_ptr<Stream>> Upgrade(Headers headers) override {
    return writer_->Upgrade(std::move(headers));
  }

 private:
  void FinishWith(uint16_t code) {
    MutexLock lock(mutex_);
    if (closed_ || std::exchange(finished_, true)) return;
    AppendWsClose(queue_, code, "");
    Pump();
  }

  // Sends everything that is queued in one piece. The pending write keeps the writer alive.
  void Pump() KEELSON_REQUIRES(mutex_) {
    if (in_flight_ > 0 || queue_.empty() || !stream_) return;
    in_flight_ = queue_.size();
    stream_->AsyncWrite(std::exchange(queue_, {}), [self = shared_from_this()](Result<> done) {
      bool over = false;
      {
        MutexLock lock(self->mutex_);
        self->in_flight_ = 0;
        over = !done || (self->finished_ && self->queue_.empty());
        if (!over) self->Pump();
      }
      if (over) self->Close();
    });
  }

  // The pending read does not keep the writer alive: dropping the writer cuts the connection.
  void Read() {
    MutexLock lock(mutex_);
    if (closed_) return;
    stream_->AsyncRead([weak = weak_from_this()](Result<std::string> bytes) {
      auto self = weak.lock();
      if (!self) return;
      if (!bytes || bytes->empty()) return self->Close();
      if (!self->parser_.Feed(*bytes)) return self->FinishWith(kProtocolError);
      if (!self->parser_.closed()) self->Read();
    });
  }

  void Pong(std::string_view payload) {
    MutexLock lock(mutex_);
    if (closed_ || finished_ || queue_.size() > kMaxPongs) return;
    AppendWsFrame(queue_, WsOpcode::kPong, "", payload);
    Pump();
  }

  void Close() {
    std::vector<std::function<void()>> callbacks;
    {
      MutexLock lock(mutex_);
      if (std::exchange(closed_, true)) return;
      if (stream_) stream_->Close();
      callbacks.swap(callbacks_);
    }
    for (const auto& callback : callbacks) callback();
  }

  static constexpr size_t kMaxPongs = 64 * 1024;  // a client this far behind gets no more pongs

  const std::shared_ptr<ResponseWriter> writer_;
  Headers handshake_;
  const Form form_;
  WsParser parser_{{.on_data = [](std::string_view, bool, bool) {},
                    .on_ping = [this](std::string_view payload) { Pong(payload); },
                    .on_close = [this] { FinishWith(kNormalClosure); }}};
  mutable Mutex mutex_;
  std::unique_ptr<Stream> stream_ KEELSON_GUARDED_BY(mutex_);
  std::string queue_ KEELSON_GUARDED_BY(mutex_);
  size_t in_flight_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool finished_ KEELSON_GUARDED_BY(mutex_) = false;
  bool closed_ KEELSON_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> callbacks_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

bool WantsWebSocket(const ServerRequest& request) { return IsWebSocketRequest(request); }

Result<std::shared_ptr<ResponseWriter>> NewWebSocketWriter(const ServerRequest& request,
                                                           std::shared_ptr<ResponseWriter> writer,
                                                           bool text) {
  std::vector<std::string> offered = OfferedSubprotocols(request);
  KEELSON_ASSIGN_OR_RETURN(Headers handshake, WebSocketHandshake(request, offered.empty() ? "" : offered[0]));
  return std::shared_ptr<ResponseWriter>(std::make_shared<WebSocketWriter>(
      std::move(writer), std::move(handshake), text ? Form::kText : Form::kBytes));
}

Result<std::shared_ptr<ResponseWriter>> NewWebSocketByteWriter(const ServerRequest& request,
                                                               std::shared_ptr<ResponseWriter> writer) {
  std::optional<ChannelProtocol> protocol = ChooseReaderProtocol(OfferedSubprotocols(request));
  if (!protocol) return Error(Code::kBadRequest, "none of the WebSocket subprotocols is supported");
  KEELSON_ASSIGN_OR_RETURN(Headers handshake, WebSocketHandshake(request, protocol->name));
  auto made = std::make_shared<WebSocketWriter>(std::move(writer), std::move(handshake),
                                                protocol->base64 ? Form::kBase64 : Form::kBytes);
  made->Write(std::make_shared<const std::string>());
  return std::shared_ptr<ResponseWriter>(std::move(made));
}

}  // namespace keelson::http
