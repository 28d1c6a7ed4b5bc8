#include <map>

#include "lib/http/streaming/remote_command.h"
#include "lib/http/streaming/spdy.h"
#include "lib/http/streaming/websocket_relay.h"

namespace keelson::http {
namespace {

class PortChannels final : public WebSocketRelay {
 public:
  PortChannels(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
               const ChannelProtocol& protocol, const std::vector<uint16_t>& ports)
      : WebSocketRelay(std::move(client), std::move(server)),
        protocol_(protocol),
        ports_(ports),
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
  void OnStart() override KEELSON_REQUIRES(mutex_) {
    for (size_t i = 0; i < ports_.size(); ++i) {
      // Servers pair the two streams with the same request id; the error stream comes first.
      Open(static_cast<unsigned char>(2 * i + 1), "error", i);
      Open(static_cast<unsigned char>(2 * i), "data", i);
    }
    Hold(kClient, true);  // the server would drop data that comes before its replies
  }
  void OnBytes(Side side, std::string_view bytes) override KEELSON_REQUIRES(mutex_) {
    if (side == kClient) return FromClient(bytes);
    Result<> fed = server_.Feed(bytes);
    if (!fed) OnEnd(kServer, &fed.error());
  }
  void OnMessage(std::string_view bytes, bool first, bool last) override KEELSON_REQUIRES(mutex_) {
    auto pass_on = [this](unsigned char channel, std::string_view data) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
      for (const auto& [id, open] : streams_) {
        if (open.channel == channel && channel % 2 == 0 && !open.ended) {
          SpdyWriter::Data(out(kServer), id, data, false);
        }
      }
    };
    Result<> read = reader_.Feed(bytes, first, last, pass_on);
    if (!read) Close(kProtocolError, read.error().message());
  }
  void OnEnd(Side side, const Error* failure) override KEELSON_REQUIRES(mutex_) {
    if (side == kClient) return End();
    Close(failure ? kGoingAway : kNormal, failure ? failure->message() : "");
  }

 private:
  struct Channel {
    unsigned char channel;
    bool replied = false, ended = false;
  };

  void Open(unsigned char channel, const char* type, size_t port) KEELSON_REQUIRES(mutex_) {
    writer_.SynStream(
        out(kServer), next_id_,
        {{"streamtype", type}, {"port", std::to_string(ports_[port])}, {"requestid", std::to_string(port)}});
    streams_[next_id_] = {channel};
    next_id_ += 2;
  }

  void OnReply(uint32_t id) KEELSON_REQUIRES(mutex_) {
    auto at = streams_.find(id);
    if (at == streams_.end() || at->second.replied) return;
    at->second.replied = true;
    for (const auto& [other, open] : streams_) {
      if (!open.replied) return;
    }
    Hold(kClient, false);
    for (size_t i = 0; i < ports_.size(); ++i) {
      const char number[2] = {static_cast<char>(ports_[i] & 0xff), static_cast<char>(ports_[i] >> 8)};
      for (size_t channel : {2 * i, 2 * i + 1}) {
        AppendChannelMessage(out(kClient), protocol_, static_cast<unsigned char>(channel), {number, 2});
      }
    }
  }

  void OnStreamData(uint32_t id, std::string_view bytes, bool fin) KEELSON_REQUIRES(mutex_) {
    auto at = streams_.find(id);
    if (at == streams_.end() || at->second.ended) return;
    if (!bytes.empty()) AppendChannelMessage(out(kClient), protocol_, at->second.channel, bytes);
    if (!fin) return;
    at->second.ended = true;
    for (const auto& [other, open] : streams_) {
      if (!open.ended) return;
    }
    Close(kNormal, "");
  }

  const ChannelProtocol protocol_;
  const std::vector<uint16_t> ports_;
  ChannelReader reader_ KEELSON_GUARDED_BY(mutex_);
  SpdyWriter writer_ KEELSON_GUARDED_BY(mutex_);
  SpdyParser server_;
  std::map<uint32_t, Channel> streams_ KEELSON_GUARDED_BY(mutex_);
  uint32_t next_id_ KEELSON_GUARDED_BY(mutex_) = 1;
};

}  // namespace

void RelayPorts(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
                const ChannelProtocol& protocol, const std::vector<uint16_t>& ports) {
  std::make_shared<PortChannels>(std::move(client), std::move(server), protocol, ports)->Start();
}

}  // namespace keelson::http
