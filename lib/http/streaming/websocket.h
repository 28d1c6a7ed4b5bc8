// WebSocket frames (RFC 6455), without extensions. Internal to lib/http/streaming.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/http/server/server.h"

namespace keelson::http {

bool IsWebSocketRequest(const ServerRequest& request);
// The subprotocols that the client offers, in its order, without the token that may be among them.
std::vector<std::string> OfferedSubprotocols(const ServerRequest& request);
// The headers of the 101 response. `subprotocol` may be empty. kBadRequest when the request is not a valid
// handshake.
Result<Headers> WebSocketHandshake(const ServerRequest& request, std::string_view subprotocol);

enum class WsOpcode : uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10
};

// Appends an unmasked frame (server to client) with `prefix` and then `payload` in it.
void AppendWsFrame(std::string& out, WsOpcode opcode, std::string_view prefix, std::string_view payload);
void AppendWsClose(std::string& out, uint16_t code, std::string_view reason);

// Parses what a client sends. Delivers payloads as they arrive, whatever the frame's length: only control
// frames are buffered.
class WsParser {
 public:
  struct Events {
    // Bytes of a message. `first` comes with its first byte, `last` with its last one (or alone, with no
    // bytes).
    std::function<void(std::string_view bytes, bool first, bool last)> on_data;
    std::function<void(std::string_view payload)> on_ping;
    std::function<void()> on_close;
  };
  explicit WsParser(Events events) : events_(std::move(events)) {}
  // kBadRequest when the client violates the protocol; the parser is then unusable.
  Result<> Feed(std::string_view bytes);
  bool closed() const { return closed_; }

 private:
  Result<> BeginFrame();
  size_t HeadSize() const;
  void Payload(std::string_view bytes);
  void EndFrame();

  Events events_;
  std::string head_;     // of the next frame, incomplete
  std::string control_;  // payload of a control frame
  bool in_payload_ = false, in_message_ = false, fin_ = false, message_started_ = false, closed_ = false;
  WsOpcode opcode_ = WsOpcode::kContinuation;
  uint64_t left_ = 0;
  unsigned char mask_[4] = {};
  size_t mask_at_ = 0;
};

}  // namespace keelson::http
