// Several byte streams in one WebSocket: each message begins with its channel. Internal to
// lib/http/streaming.
//
//   v5.channel.k8s.io, v4.channel.k8s.io, channel.k8s.io    a byte, then bytes
//   v4.base64.channel.k8s.io, base64.channel.k8s.io         a digit, then base64, as text
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/http/streaming/websocket.h"

namespace keelson::http {

struct ChannelProtocol {
  std::string name;          // the subprotocol; empty when the client offered none
  bool base64 = false;       // messages are text
  bool close = false;        // v5: channel 255 half-closes a stream
  bool plain_error = false;  // before v4: plain text on the error channel, nothing on success
};

// Choose a protocol from the client's offer; nullopt: no known one. For exec and attach:
std::optional<ChannelProtocol> ChooseCommandProtocol(const std::vector<std::string>& offered);
// For port-forward:
std::optional<ChannelProtocol> ChoosePortProtocol(const std::vector<std::string>& offered);
// For a single byte stream without channels (base64.binary.k8s.io, binary.k8s.io):
std::optional<ChannelProtocol> ChooseReaderProtocol(const std::vector<std::string>& offered);

// Appends a message to what goes to the client.
void AppendChannelMessage(std::string& out, const ChannelProtocol& protocol, unsigned char channel,
                          std::string_view bytes);

// Splits the client's messages into channels and bytes.
class ChannelReader {
 public:
  using OnBytes = std::function<void(unsigned char channel, std::string_view bytes)>;
  explicit ChannelReader(const ChannelProtocol& protocol) : base64_(protocol.base64) {}
  // Takes bytes as WsParser delivers them. `on_bytes` gets binary messages piece by piece, base64 ones when
  // complete. kBadRequest: not base64, or the message is too long.
  Result<> Feed(std::string_view bytes, bool first, bool last, const OnBytes& on_bytes);

 private:
  const bool base64_;
  std::string encoded_;                    // a base64 message, incomplete
  std::optional<unsigned char> incoming_;  // channel of the current message
};

}  // namespace keelson::http
