#include "lib/http/streaming/channels.h"

#include <algorithm>

#include "lib/base/base64.h"
#include "lib/base/text.h"

namespace keelson::http {
namespace {

constexpr size_t kMaxEncoded = 64 << 10;

std::optional<ChannelProtocol> Choose(const std::vector<ChannelProtocol>& known,
                                      const std::vector<std::string>& offered) {
  // Clients from before subprotocols had names.
  if (offered.empty()) {
    ChannelProtocol unnamed = known.back();
    unnamed.name.clear();
    return unnamed;
  }
  for (const std::string& name : offered) {
    for (const ChannelProtocol& one : known) {
      if (one.name == name) return one;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChannelProtocol> ChooseCommandProtocol(const std::vector<std::string>& offered) {
  return Choose({{.name = "v5.channel.k8s.io", .close = true},
                 {.name = "v4.channel.k8s.io"},
                 {.name = "v4.base64.channel.k8s.io", .base64 = true},
                 {.name = "base64.channel.k8s.io", .base64 = true, .plain_error = true},
                 {.name = "channel.k8s.io", .plain_error = true}},
                offered);
}

std::optional<ChannelProtocol> ChoosePortProtocol(const std::vector<std::string>& offered) {
  return Choose({{.name = "v4.base64.channel.k8s.io", .base64 = true}, {.name = "v4.channel.k8s.io"}},
                offered);
}

std::optional<ChannelProtocol> ChooseReaderProtocol(const std::vector<std::string>& offered) {
  return Choose({{.name = "base64.binary.k8s.io", .base64 = true}, {.name = "binary.k8s.io"}}, offered);
}

void AppendChannelMessage(std::string& out, const ChannelProtocol& protocol, unsigned char channel,
                          std::string_view bytes) {
  const char prefix = static_cast<char>(protocol.base64 ? '0' + channel : channel);
  if (protocol.base64) return AppendWsFrame(out, WsOpcode::kText, {&prefix, 1}, EncodeBase64(bytes));
  AppendWsFrame(out, WsOpcode::kBinary, {&prefix, 1}, bytes);
}

Result<> ChannelReader::Feed(std::string_view bytes, bool first, bool last, const OnBytes& on_bytes) {
  if (base64_) {
    encoded_ += bytes;
    if (encoded_.size() > kMaxEncoded) return Error(Code::kBadRequest, "message too long");
    if (!last || encoded_.empty()) return {};
    std::string text = std::exchange(encoded_, {});
    const Result<std::string> plain = DecodeBase64(Trim(std::string_view(text).substr(1)));
    if (!plain) return Error(Code::kBadRequest, "not base64");
    on_bytes(static_cast<unsigned char>(text[0] - '0'), *plain);
    return {};
  }
  if (first) {
    incoming_.reset();
    if (bytes.empty()) return {};
    incoming_ = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
  }
  if (incoming_ && !bytes.empty()) on_bytes(*incoming_, bytes);
  return {};
}

}  // namespace keelson::http
