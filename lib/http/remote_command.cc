#include "lib/http/remote_command.h"

#include <openssl/evp.h>

#include <map>
#include <optional>

#include "lib/http/relay.h"
#include "lib/http/spdy.h"
#include "lib/http/websocket.h"

namespace keelson::http {
namespace {

enum Channel : unsigned char { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4, kClose = 255 };
constexpr size_t kMaxStatus = 64 << 10;
constexpr uint16_t kNormal = 1000, kProtocolError = 1002, kGoingAway = 1001;

// What both kinds of client have in common: a WebSocket on side 0.
class WebSocketRelay : public Relay {
 protected:
  WebSocketRelay(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server)
      : Relay(std::move(client), std::move(server)),
        client_({.on_data = [this](std::string_view bytes, bool first, bool last)
                                NO_THREAD_SAFETY_ANALYSIS { OnMessage(bytes, first, last); },
                 .on_ping =
                     [this](std::string_view payload) NO_THREAD_SAFETY_ANALYSIS {
                       AppendWsFrame(out(kClient), WsOpcode::kPong, {}, payload);
                     },
                 .on_close = [this]() NO_THREAD_SAFETY_ANALYSIS { Close(kNormal, ""); }}) {}

  virtual void OnMessage(std::string_view bytes, bool first, bool last) REQUIRES(mutex_) = 0;

  void FromClient(std::string_view bytes) REQUIRES(mutex_) {
    Result<> fed = client_.Feed(bytes);
    if (!fed) Close(kProtocolError, fed.error().message());
  }
  void Close(uint16_t code, std::string_view reason) REQUIRES(mutex_) {
    AppendWsClose(out(kClient), code, reason);
    End();
  }

 private:
  WsParser client_;
};

class Tunnel final : public WebSocketRelay {
 public:
  using WebSocketRelay::WebSocketRelay;
  Tunnel(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server)
      : WebSocketRelay(std::move(client), std::move(server)) {}

 protected:
  void OnBytes(Side side, std::string_view bytes) override REQUIRES(mutex_) {
    if (side == kClient) return FromClient(bytes);
    AppendWsFrame(out(kClient), WsOpcode::kBinary, {}, bytes);
  }
  void OnMessage(std::string_view bytes, bool, bool) override REQUIRES(mutex_) { out(kServer) += bytes; }
  void OnEnd(Side side, const Error* failure) override REQUIRES(mutex_) {
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
        server_({.on_reply = [this](uint32_t id) NO_THREAD_SAFETY_ANALYSIS { OnReply(id); },
                 .on_data = [this](uint32_t id, std::string_view bytes, bool fin)
                                NO_THREAD_SAFETY_ANALYSIS { OnStreamData(id, bytes, fin); },
                 .on_reset = [this](uint32_t id) NO_THREAD_SAFETY_ANALYSIS { OnStreamData(id, {}, true); },
                 .on_ping =
                     [this](uint32_t id) NO_THREAD_SAFETY_ANALYSIS {
                       if (id % 2 == 0) SpdyWriter::Ping(out(kServer), id);
                     },
                 .on_goaway = [] {}}) {}

 protected:
  void OnStart() override REQUIRES(mutex_);
  void OnBytes(Side side, std::string_view bytes) override REQUIRES(mutex_) {
    if (side == kClient) return FromClient(bytes);
    Result<> fed = server_.Feed(bytes);
    if (!fed) OnEnd(kServer, &fed.error());
  }
  void OnMessage(std::string_view bytes, bool first, bool last) override REQUIRES(mutex_);
  void OnEnd(Side side, const Error* failure) override REQUIRES(mutex_);

 private:
  struct Open {
    Channel channel;
    bool replied = false, ended = false;
  };
  void OpenStream(Channel channel, const char* type) REQUIRES(mutex_);
  void OnReply(uint32_t id) REQUIRES(mutex_);
  void OnStreamData(uint32_t id, std::string_view bytes, bool fin) REQUIRES(mutex_);
  void FromChannel(Channel channel, std::string_view bytes) REQUIRES(mutex_);
  void ToChannel(Channel channel, std::string_view bytes) REQUIRES(mutex_);
  void SendStatus() REQUIRES(mutex_);
  void HalfClose(unsigned char channel) REQUIRES(mutex_);

  const ChannelProtocol protocol_;
  const RemoteCommandStreams wanted_;
  SpdyWriter writer_ GUARDED_BY(mutex_);
  SpdyParser server_;
  std::map<uint32_t, Open> streams_ GUARDED_BY(mutex_);
  uint32_t next_id_ GUARDED_BY(mutex_) = 1;
  std::string status_ GUARDED_BY(mutex_);               // of the error stream: sent in one message
  std::string encoded_ GUARDED_BY(mutex_);              // a base64 message so far
  std::optional<Channel> incoming_ GUARDED_BY(mutex_);  // of the message that is being read
};

void RemoteCommand::OnStart() {
  OpenStream(kError, "error");
  if (wanted_.in) OpenStream(kStdin, "stdin");
  if (wanted_.out) OpenStream(kStdout, "stdout");
  if (wanted_.err) OpenStream(kStderr, "stderr");
  if (wanted_.tty) OpenStream(kResize, "resize");
  Hold(kClient, true);  // the server would drop what comes before its replies
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
  // An empty message tells clients that all is connected.
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
  // Over when the server has ended all that it writes to.
  for (const auto& [other, open] : streams_) {
    bool written = open.channel == kError || open.channel == kStdout || open.channel == kStderr;
    if (written && !open.ended) return;
  }
  SendStatus();
  Close(kNormal, "");
}

void RemoteCommand::SendStatus() {
  if (!status_.empty()) ToChannel(kError, status_);
  status_.clear();
}

void RemoteCommand::ToChannel(Channel channel, std::string_view bytes) {
  if (!protocol_.base64) {
    const char prefix = static_cast<char>(channel);
    return AppendWsFrame(out(kClient), WsOpcode::kBinary, {&prefix, 1}, bytes);
  }
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  const char prefix = static_cast<char>('0' + channel);
  AppendWsFrame(out(kClient), WsOpcode::kText, {&prefix, 1},
                std::string_view(text).substr(0, static_cast<size_t>(size)));
}

void RemoteCommand::OnMessage(std::string_view bytes, bool first, bool last) {
  if (protocol_.base64) {
    encoded_ += bytes;
    if (encoded_.size() > kMaxStatus) return Close(kProtocolError, "message too long");
    if (!last || encoded_.empty()) return;
    std::string text = std::exchange(encoded_, {});
    std::string plain(text.size(), '\0');
    int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(plain.data()),
                               reinterpret_cast<const unsigned char*>(text.data()) + 1,
                               static_cast<int>(text.size()) - 1);
    if (size < 0) return Close(kProtocolError, "not base64");
    for (size_t i = text.size(); i > 1 && text[i - 1] == '='; --i) --size;
    return FromChannel(static_cast<Channel>(text[0] - '0'),
                       std::string_view(plain).substr(0, static_cast<size_t>(std::max(size, 0))));
  }
  if (first) {
    incoming_.reset();
    if (bytes.empty()) return;
    incoming_ = static_cast<Channel>(bytes[0]);
    bytes.remove_prefix(1);
  }
  if (incoming_ && !bytes.empty()) FromChannel(*incoming_, bytes);
}

void RemoteCommand::FromChannel(Channel channel, std::string_view bytes) {
  if (channel == kClose && protocol_.close) return HalfClose(static_cast<unsigned char>(bytes[0]));
  if (channel != kStdin && channel != kResize) return;
  for (const auto& [id, open] : streams_) {
    if (open.channel == channel && !open.ended && !bytes.empty())
      SpdyWriter::Data(out(kServer), id, bytes, false);
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

std::optional<ChannelProtocol> ChooseChannelProtocol(const std::vector<std::string>& offered) {
  static const ChannelProtocol kKnown[] = {{"v5.channel.k8s.io", true, false},
                                           {"v4.channel.k8s.io", false, false},
                                           {"v4.base64.channel.k8s.io", false, true}};
  for (const std::string& name : offered) {
    for (const ChannelProtocol& known : kKnown) {
      if (known.name == name) return known;
    }
  }
  return std::nullopt;
}

void RelayRemoteCommand(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
                        const ChannelProtocol& protocol, const RemoteCommandStreams& streams) {
  std::make_shared<RemoteCommand>(std::move(client), std::move(server), protocol, streams)->Start();
}

void RelayTunnel(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server) {
  std::make_shared<Tunnel>(std::move(client), std::move(server))->Start();
}

}  // namespace keelson::http
