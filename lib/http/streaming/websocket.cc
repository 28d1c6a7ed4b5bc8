#include "lib/http/streaming/websocket.h"

#include <algorithm>
#include <utility>

#include "lib/base/base64.h"
#include "lib/base/text.h"
#include "lib/crypto/digest.h"

namespace keelson::http {
namespace {

// Browsers cannot set an Authorization header; they put their bearer token here.
constexpr std::string_view kTokenProtocol = "base64url.bearer.authorization.k8s.io.";

constexpr size_t kMaxControl = 125;

// Whether a comma-separated header contains `token`, ignoring case.
bool HasToken(std::string_view list, std::string_view token) {
  const std::vector<std::string_view> items = Split(list, ',');
  return std::any_of(items.begin(), items.end(),
                     [&](std::string_view item) { return EqualsIgnoreCase(Trim(item, " "), token); });
}

}  // namespace

bool IsWebSocketRequest(const ServerRequest& request) {
  return EqualsIgnoreCase(request.headers.Get("Upgrade"), "websocket") &&
         HasToken(request.headers.Get("Connection"), "upgrade");
}

std::vector<std::string> OfferedSubprotocols(const ServerRequest& request) {
  std::vector<std::string> out;
  for (std::string_view list : request.headers.All("Sec-WebSocket-Protocol")) {
    for (std::string_view part : Split(list, ',')) {
      const std::string_view item = Trim(part, " ");
      if (!item.empty() && !item.starts_with(kTokenProtocol)) out.emplace_back(item);
    }
  }
  return out;
}

Result<Headers> WebSocketHandshake(const ServerRequest& request, std::string_view subprotocol) {
  std::string key(request.headers.Get("Sec-WebSocket-Key"));
  if (request.method != "GET" || key.empty() || request.headers.Get("Sec-WebSocket-Version") != "13") {
    return Error(Code::kBadRequest, "not a WebSocket handshake of version 13");
  }
  key += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 section 1.3
  Headers headers{{"Upgrade", "websocket"}, {"Connection", "Upgrade"}};
  headers.Add("Sec-WebSocket-Accept", EncodeBase64(crypto::Sha1(key)));
  if (!subprotocol.empty()) headers.Add("Sec-WebSocket-Protocol", std::string(subprotocol));
  return headers;
}

void AppendWsFrame(std::string& out, WsOpcode opcode, std::string_view prefix, std::string_view payload) {
  uint64_t size = prefix.size() + payload.size();
  out += static_cast<char>(0x80 | static_cast<uint8_t>(opcode));
  int bytes = size < 126 ? 0 : size <= 0xffff ? 2 : 8;
  out += static_cast<char>(bytes == 0 ? size : bytes == 2 ? 126 : 127);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i) & 0xff);
  out.append(prefix).append(payload);
}

void AppendWsClose(std::string& out, uint16_t code, std::string_view reason) {
  const char bytes[2] = {static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  AppendWsFrame(out, WsOpcode::kClose, {bytes, 2}, reason.substr(0, kMaxControl - 2));
}

size_t WsParser::HeadSize() const {
  if (head_.size() < 2) return 2;
  int length = head_[1] & 0x7f;
  return 2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + 4;
}

Result<> WsParser::Feed(std::string_view bytes) {
  while (!closed_) {
    if (!in_payload_) {
      size_t wanted = HeadSize();
      size_t taken = std::min(wanted - head_.size(), bytes.size());
      head_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      if (head_.size() < wanted) return {};
      if (wanted == 2) {
        if (!(head_[1] & 0x80)) return Error(Code::kBadRequest, "websocket: frame without mask");
        continue;
      }
      KEELSON_RETURN_IF_ERROR(BeginFrame());
    }
    size_t taken = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
    std::string plain(bytes.substr(0, taken));
    for (char& c : plain) c = static_cast<char>(c ^ mask_[mask_at_++ & 3]);
    bytes.remove_prefix(taken);
    left_ -= taken;
    Payload(plain);
    if (left_ > 0) return {};
    EndFrame();
    if (bytes.empty()) return {};
  }
  return {};
}

Result<> WsParser::BeginFrame() {
  auto byte = [this](size_t i) { return static_cast<unsigned char>(head_[i]); };
  if (byte(0) & 0x70) return Error(Code::kBadRequest, "websocket: reserved bits set");
  fin_ = byte(0) & 0x80;
  opcode_ = static_cast<WsOpcode>(byte(0) & 0x0f);
  size_t length_bytes = head_.size() - 6;
  left_ = byte(1) & 0x7f;
  if (length_bytes > 0) {
    left_ = 0;
    for (size_t i = 0; i < length_bytes; ++i) left_ = left_ << 8 | byte(2 + i);
  }
  for (size_t i = 0; i < 4; ++i) mask_[i] = byte(head_.size() - 4 + i);
  mask_at_ = 0;
  head_.clear();
  in_payload_ = true;
  switch (opcode_) {
    case WsOpcode::kText:
    case WsOpcode::kBinary:
      if (in_message_) return Error(Code::kBadRequest, "websocket: message inside a message");
      in_message_ = true;
      message_started_ = false;
      return {};
    case WsOpcode::kContinuation:
      if (!in_message_) return Error(Code::kBadRequest, "websocket: continuation of nothing");
      return {};
    case WsOpcode::kClose:
    case WsOpcode::kPing:
    case WsOpcode::kPong:
      if (!fin_ || left_ > kMaxControl) return Error(Code::kBadRequest, "websocket: bad control frame");
      control_.clear();
      return {};
  }
  return Error(Code::kBadRequest, "websocket: unknown opcode");
}

void WsParser::Payload(std::string_view bytes) {
  if (opcode_ >= WsOpcode::kClose) {
    control_ += bytes;
    return;
  }
  bool last = fin_ && left_ == 0;
  if (bytes.empty() && !last) return;
  bool first = !std::exchange(message_started_, message_started_ || !bytes.empty());
  events_.on_data(bytes, first, last);
}

void WsParser::EndFrame() {
  in_payload_ = false;
  switch (opcode_) {
    case WsOpcode::kClose:
      closed_ = true;
      events_.on_close();
      break;
    case WsOpcode::kPing:
      events_.on_ping(control_);
      break;
    case WsOpcode::kPong:
      break;
    default:
      if (fin_) in_message_ = false;
  }
}

}  // namespace keelson::http
