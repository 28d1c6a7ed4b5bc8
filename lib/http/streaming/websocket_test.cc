#include "lib/http/streaming/websocket.h"

#include <gtest/gtest.h>

#include <random>

namespace keelson::http {
namespace {

std::string Masked(uint8_t first, std::string_view payload, bool mask = true) {
  std::string out(1, static_cast<char>(first));
  uint8_t bit = mask ? 0x80 : 0;
  if (payload.size() < 126) {
    out += static_cast<char>(bit | payload.size());
  } else if (payload.size() <= 0xffff) {
    out += static_cast<char>(bit | 126);
    out += static_cast<char>(payload.size() >> 8);
    out += static_cast<char>(payload.size() & 0xff);
  } else {
    out += static_cast<char>(bit | 127);
    for (int i = 7; i >= 0; --i) out += static_cast<char>(payload.size() >> (8 * i) & 0xff);
  }
  if (!mask) return out.append(payload);
  const char key[4] = {0x11, 0x22, 0x33, 0x44};
  out.append(key, 4);
  for (size_t i = 0; i < payload.size(); ++i) out += static_cast<char>(payload[i] ^ key[i & 3]);
  return out;
}

struct Seen {
  std::string log;
  WsParser parser{
      {.on_data =
           [this](std::string_view bytes, bool first, bool last) {
             if (first) log += "<";
             log += bytes;
             if (last) log += ">";
           },
       .on_ping = [this](std::string_view payload) { log += "ping(" + std::string(payload) + ")"; },
       .on_close = [this] { log += "close"; }}};
};

TEST(WebSocket, ReadsFramesHoweverTheyAreCut) {
  std::string big(70000, 'b'), middle(300, 'm');
  std::string bytes = Masked(0x82, "one") + Masked(0x02, "fr") + Masked(0x89, "hi") + Masked(0x00, "ag") +
                      Masked(0x80, "ment") + Masked(0x82, "") + Masked(0x82, middle) + Masked(0x82, big) +
                      Masked(0x8a, "pong") + Masked(0x88, "\x03\xe8");
  std::string expected = "<one><frping(hi)agment><><" + middle + "><" + big + ">close";
  for (size_t step : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1000}, bytes.size()}) {
    Seen seen;
    for (size_t at = 0; at < bytes.size(); at += step) {
      ASSERT_TRUE(seen.parser.Feed(std::string_view(bytes).substr(at, step)));
    }
    EXPECT_TRUE(seen.log == expected) << step << ": " << seen.log.substr(0, 60);
    EXPECT_TRUE(seen.parser.closed());
  }
}

TEST(WebSocket, RefusesBrokenFrames) {
  const std::string cases[] = {
      Masked(0x82, "x", false),               // no mask
      Masked(0xc2, "x"),                      // reserved bit
      Masked(0x83, "x"),                      // unknown opcode
      Masked(0x80, "x"),                      // continuation of nothing
      Masked(0x02, "x") + Masked(0x82, "y"),  // message inside a message
      Masked(0x09, "x"),                      // fragmented ping
      Masked(0x89, std::string(126, 'x')),    // long ping
  };
  for (const std::string& bytes : cases) {
    Seen seen;
    EXPECT_FALSE(seen.parser.Feed(bytes));
  }
}

TEST(WebSocket, SurvivesNoise) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    Seen seen;
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (round % 2 && !bytes.empty()) bytes[0] = static_cast<char>(0x82);
    for (char c : bytes) {
      if (!seen.parser.Feed({&c, 1})) break;
    }
  }
}

TEST(WebSocket, WritesFrames) {
  std::string out;
  AppendWsFrame(out, WsOpcode::kBinary, "\x01", "abc");
  EXPECT_EQ(out, std::string("\x82\x04\x01"
                             "abc"));
  out.clear();
  AppendWsFrame(out, WsOpcode::kBinary, {}, std::string(300, 'x'));
  EXPECT_EQ(out.substr(0, 4), std::string("\x82\x7e\x01\x2c"));
  EXPECT_EQ(out.size(), 304u);
  out.clear();
  AppendWsFrame(out, WsOpcode::kBinary, {}, std::string(70000, 'x'));
  EXPECT_EQ(out.size(), 70010u);
  out.clear();
  AppendWsClose(out, 1000, "");
  EXPECT_EQ(out, std::string("\x88\x02\x03\xe8"));
}

TEST(WebSocket, Handshake) {
  ServerRequest request;
  request.method = "GET";
  request.headers = {{"Upgrade", "websocket"},
                     {"Connection", "keep-alive, Upgrade"},
                     {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                     {"Sec-WebSocket-Version", "13"},
                     {"Sec-WebSocket-Protocol", "v5.channel.k8s.io, v4.channel.k8s.io"}};
  EXPECT_TRUE(IsWebSocketRequest(request));
  EXPECT_EQ(OfferedSubprotocols(request),
            (std::vector<std::string>{"v5.channel.k8s.io", "v4.channel.k8s.io"}));
  auto headers = WebSocketHandshake(request, "v5.channel.k8s.io");
  ASSERT_TRUE(headers);
  EXPECT_EQ(headers->Get("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // RFC 6455 section 1.3
  EXPECT_EQ(headers->Get("Sec-WebSocket-Protocol"), "v5.channel.k8s.io");
  request.headers.Set("Sec-WebSocket-Version", "8");
  EXPECT_FALSE(WebSocketHandshake(request, ""));
}

}  // namespace
}  // namespace keelson::http
