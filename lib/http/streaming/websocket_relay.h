// A WebSocket client on one side, a byte stream on the other. Internal to lib/http/streaming.
#pragma once

#include <memory>
#include <utility>

#include "lib/http/streaming/relay.h"
#include "lib/http/streaming/websocket.h"

namespace keelson::http {

class WebSocketRelay : public Relay {
 protected:
  static constexpr uint16_t kNormal = 1000, kGoingAway = 1001, kProtocolError = 1002;

  WebSocketRelay(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server)
      : Relay(std::move(client), std::move(server)),
        client_({.on_data = [this](std::string_view bytes, bool first, bool last)
                                KEELSON_NO_THREAD_SAFETY_ANALYSIS { OnMessage(bytes, first, last); },
                 .on_ping =
                     [this](std::string_view payload) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
                       AppendWsFrame(out(kClient), WsOpcode::kPong, {}, payload);
                     },
                 .on_close = [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { Close(kNormal, ""); }}) {}

  virtual void OnMessage(std::string_view bytes, bool first, bool last) KEELSON_REQUIRES(mutex_) = 0;

  void FromClient(std::string_view bytes) KEELSON_REQUIRES(mutex_) {
    Result<> fed = client_.Feed(bytes);
    if (!fed) Close(kProtocolError, fed.error().message());
  }
  void Close(uint16_t code, std::string_view reason) KEELSON_REQUIRES(mutex_) {
    AppendWsClose(out(kClient), code, reason);
    End();
  }

 private:
  WsParser client_;
};

}  // namespace keelson::http
