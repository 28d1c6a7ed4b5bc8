// WebSocket frames (RFC 6455), without extensions. Internal to lib/http.
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
// The subprotocols that the client offers, in its order; not the token that may travel with them.
std::vector<std::string> OfferedSubprotocols(const ServerRequest& request);
// The headers of the 101. `subprotocol` may be empty. kBadRequest when the request is no proper handshake.
Result<Headers> WebSocketHandshake(const ServerRequest& request, std::string_view subprotocol);

enum class WsOpcode : uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10
};

// Appends an unmasked frame (server to client). `prefix` goes before `payload` inside the frame.
void AppendWsFrame(std::string& out, WsOpcode opcode, std::string_view prefix, std::string_view payload);
void AppendWsClose(std::string& out, uint16_t code, std::string_view reason);

// Reads what a client sends. Payloads are handed on as they come, whatever a frame's length: nothing but
// control frames is ever held.
class WsParser {
 public:
  struct Events {
    // Bytes of a message; `first` with its first byte, `last` with its last (which may come alone, empty).
    std::function<void(std::string_view bytes, bool first, bool last)> on_data;
    std::function<void(std::string_view payload)> on_ping;
    std::function<void()> on_close;
  };
  explicit WsParser(Events events) : events_(std::move(events)) {}
  // kBadRequest when the client breaks the protocol; nothing may follow.
  Result<> Feed(std::string_view bytes);
  bool closed() const { return closed_; }

 private:
  Result<> BeginFrame();
  size_t HeadSize() const;
  void Payload(std::string_view bytes);
  void EndFrame();

  Events events_;
  std::string head_;     // of the frame that begins
  std::string control_;  // payload of a control frame
  bool in_payload_ = false, in_message_ = false, fin_ = false, message_started_ = false, closed_ = false;
  WsOpcode opcode_ = WsOpcode::kContinuation;
  uint64_t left_ = 0;
  unsigned char mask_[4] = {};
  size_t mask_at_ = 0;
};

}  // namespace keelson::http
