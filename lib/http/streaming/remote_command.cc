#include "lib/http/streaming/remote_command.h"

#include <map>

#include <boost/json/parse.hpp>

#include "lib/http/streaming/spdy.h"
#include "lib/http/streaming/websocket_relay.h"

namespace keelson::http {
namespace {

enum Channel : unsigned char { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4, kClose = 255 };
constexpr size_t kMaxStatus = 64 << 10;

// The error channel before v4: nothing on success, else just the message.
std::string PlainError(const std::string& status) {
  boost::system::error_code error;
  boost::json::value parsed = boost::json::parse(status, error);
  const boost::json::object* object = error ? nullptr : parsed.if_object();
  if (!object) return status;
  auto text = [&](const char* name) {
    const boost::json::value* value = object->if_contains(name);
    const boost::json::string* found = value ? value->if_string() : nullptr;
    return found ? std::string(found->data(), found->size()) : std::string();
  };
  return text("status") == "Success" ? "" : text("message");
}

class Tunnel final : public WebSocketRelay {
 public:
  using WebSocketRelay::WebSocketRelay;
  Tunnel(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server)
      : WebSocketRelay(std::move(client), std::move(server)) {}

 protected:
  void OnBytes(Side side, std::string_view bytes) override KEELSON_REQUIRES(mutex_) {
    if (side == kClient) return FromClient(bytes);
    AppendWsFrame(out(kClient), WsOpcode::kBinary, {}, bytes);
  }
  void OnMessage(std::string_view bytes, bool, bool) override KEELSON_REQUIRES(mutex_) {
    out(kServer) += bytes;
  }
  void OnEnd(Side side, const Error* failure) override KEELSON_REQUIRES(mutex_) {
    if (side == kClient) return End();
    Close(failure ? kGoingAway : kNormal, failure ? failure->message() : "");
  }
};

class RemoteCommand final : public WebSocketRelay {
 public:
  RemoteCommand(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
                const ChannelProtocol& protocol, const RemoteCommandStreams& streams)
      : WebSocketRelay(std::move(client), std::move(server)),
        protocol_(protocol),
        wanted_(streams),
        reader_(protocol),
        server_({.on_reply = [this](uint32_t id) KEELSON_NO_THREAD_SAFETY_ANALYSIS { OnReply(id); },
                 .on_data = [this](uint32_t id, std::string_view bytes, bool fin)
                                KEELSON_NO_THREAD_SAFETY_ANALYSIS { OnStreamData(id, bytes, fin); },
                 .on_reset = [this](uint32_t id)
                                 KEELSON_NO_THREAD_SAFETY_ANALYSIS { OnStreamData(id, {}, true); },
                 .on_ping =
                     [this](uint32_t id) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
                       if (id % 2 == 0) SpdyWriter::Ping(out(kServer), id);
                     },
                 .on_goaway = [] {}}) {}

 protected:
  void OnStart() override KEELSON_REQUIRES(mutex_);
  void OnBytes(Side side, std::string_view bytes) override KEELSON_REQUIRES(mutex_) {
    if (side == kClient) return FromClient(bytes);
    Result<> fed = server_.Feed(bytes);
    if (!fed) OnEnd(kServer, &fed.error());
  }
  void OnMessage(std::string_view bytes, bool first, bool last) override KEELSON_REQUIRES(mutex_);
  void OnEnd(Side side, const Error* failure) override KEELSON_REQUIRES(mutex_);

 private:
  struct Open {
    Channel channel;
    bool replied = false, ended = false;
  };
  void OpenStream(Channel channel, const char* type) KEELSON_REQUIRES(mutex_);
  void OnReply(uint32_t id) KEELSON_REQUIRES(mutex_);
  void OnStreamData(uint32_t id, std::string_view bytes, bool fin) KEELSON_REQUIRES(mutex_);
  void FromChannel(unsigned char channel, std::string_view bytes) KEELSON_REQUIRES(mutex_);
  void ToChannel(Channel channel, std::string_view bytes) KEELSON_REQUIRES(mutex_) {
    AppendChannelMessage(out(kClient), protocol_, channel, bytes);
  }
  void SendStatus() KEELSON_REQUIRES(mutex_);
  void HalfClose(unsigned char channel) KEELSON_REQUIRES(mutex_);

  const ChannelProtocol protocol_;
  const RemoteCommandStreams wanted_;
  ChannelReader reader_ KEELSON_GUARDED_BY(mutex_);
  SpdyWriter writer_ KEELSON_GUARDED_BY(mutex_);
  SpdyParser server_;
  std::map<uint32_t, Open> streams_ KEELSON_GUARDED_BY(mutex_);
  uint32_t next_id_ KEELSON_GUARDED_BY(mutex_) = 1;
  std::string status_ KEELSON_GUARDED_BY(mutex_);  // of the error stream: sent as one message
};

void RemoteCommand::OnStart() {
  OpenStream(kError, "error");
  if (wanted_.in) OpenStream(kStdin, "stdin");
  if (wanted_.out) OpenStream(kStdout, "stdout");
  if (wanted_.err) OpenStream(kStderr, "stderr");
  if (wanted_.tty) OpenStream(kResize, "resize");
  Hold(kClient, true);  // the server would drop data that comes before its replies
}

void RemoteCommand::OpenStream(Channel channel, const char* type) {
  writer_.SynStream(out(kServer), next_id_, {{"streamtype", type}});
  streams_[next_id_] = {channel};
  next_id_ += 2;
}

void RemoteCommand::OnReply(uint32_t id) {
  auto at = streams_.find(id);
  if (at == streams_.end() || at->second.replied) return;
  at->second.replied = true;
  for (const auto& [other, open] : streams_) {
    if (!open.replied) return;
  }
  Hold(kClient, false);
  // An empty message tells clients that the streams are connected.
  ToChannel(wanted_.out ? kStdout : wanted_.err ? kStderr : kError, {});
}

void RemoteCommand::OnStreamData(uint32_t id, std::string_view bytes, bool fin) {
  auto at = streams_.find(id);
  if (at == streams_.end() || at->second.ended) return;
  Channel channel = at->second.channel;
  if (channel == kError) {
    status_.append(bytes.substr(0, kMaxStatus - std::min(kMaxStatus, status_.size())));
  } else if (!bytes.empty()) {
    ToChannel(channel, bytes);
  }
  if (!fin) return;
  at->second.ended = true;
  // Done when the server has ended all the streams that it writes to.
  for (const auto& [other, open] : streams_) {
    bool written = open.channel == kError || open.channel == kStdout || open.channel == kStderr;
    if (written && !open.ended) return;
  }
  SendStatus();
  Close(kNormal, "");
}

void RemoteCommand::SendStatus() {
  if (protocol_.plain_error) status_ = PlainError(status_);
  if (!status_.empty()) ToChannel(kError, status_);
  status_.clear();
}

void RemoteCommand::OnMessage(std::string_view bytes, bool first, bool last) {
  Result<> read = reader_.Feed(bytes, first, last,
                               [this](unsigned char channel, std::string_view data)
                                   KEELSON_NO_THREAD_SAFETY_ANALYSIS { FromChannel(channel, data); });
  if (!read) Close(kProtocolError, read.error().message());
}

void RemoteCommand::FromChannel(unsigned char channel, std::string_view bytes) {
  if (channel == kClose && protocol_.close) {
    return bytes.empty() ? void() : HalfClose(static_cast<unsigned char>(bytes[0]));
  }
  if (channel != kStdin && channel != kResize) return;
  for (const auto& [id, open] : streams_) {
    if (open.channel == channel && !open.ended && !bytes.empty()) {
      SpdyWriter::Data(out(kServer), id, bytes, false);
    }
  }
}

void RemoteCommand::HalfClose(unsigned char channel) {
  if (channel != kStdin) return;
  for (auto& [id, open] : streams_) {
    if (open.channel != kStdin || open.ended) continue;
    open.ended = true;
    SpdyWriter::Data(out(kServer), id, {}, true);
  }
}

void RemoteCommand::OnEnd(Side side, const Error* failure) {
  if (side == kClient) return End();
  if (failure && status_.empty()) {
    status_ = R"({"metadata":{},"status":"Failure","message":"connection to the container runtime lost",)"
              R"("reason":"InternalError","code":500})";
  }
  SendStatus();
  Close(kNormal, "");
}

}  // namespace

void RelayRemoteCommand(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
                        const ChannelProtocol& protocol, const RemoteCommandStreams& streams) {
  std::make_shared<RemoteCommand>(std::move(client), std::move(server), protocol, streams)->Start();
}

void RelayTunnel(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server) {
  std::make_shared<Tunnel>(std::move(client), std::move(server))->Start();
}

}  // namespace keelson::http
