#include "lib/http/streaming/spdy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "lib/http/streaming/spdy_test_peer.h"

namespace keelson::http {
namespace {

struct Seen {
  std::string log;
  SpdyParser parser{{.on_reply = [this](uint32_t id) { log += "reply(" + std::to_string(id) + ")"; },
                     .on_data =
                         [this](uint32_t id, std::string_view bytes, bool fin) {
                           log += std::to_string(id) + ":" + std::string(bytes) + (fin ? "." : ",");
                         },
                     .on_reset = [this](uint32_t id) { log += "reset(" + std::to_string(id) + ")"; },
                     .on_ping = [this](uint32_t id) { log += "ping(" + std::to_string(id) + ")"; },
                     .on_goaway = [this] { log += "goaway"; }}};
};

TEST(Spdy, DictionaryIsThatOfVersion3) {
  std::string_view dictionary = SpdyDictionary();
  EXPECT_EQ(dictionary.size(), 1423u);
  EXPECT_EQ(
      adler32(1, reinterpret_cast<const Bytef*>(dictionary.data()), static_cast<uInt>(dictionary.size())),
      0xe3c6a7c2u);
}

TEST(Spdy, HeaderBlocksOfOneConnectionInflate) {
  SpdyWriter writer;
  SpdyTestPeer peer;
  std::string bytes;
  for (const char* type : {"error", "stdin", "stdout", "stderr", "resize"}) {
    writer.SynStream(bytes, 1, {{"streamtype", type}, {"x", "y"}});
  }
  auto frames = peer.Take(bytes);
  ASSERT_EQ(frames.size(), 5u);
  EXPECT_EQ(frames[0].headers.Get("streamtype"), "error");
  EXPECT_EQ(frames[4].headers.Get("streamtype"), "resize");
  EXPECT_EQ(frames[4].headers.Get("x"), "y");
}

TEST(Spdy, ReadsFramesHoweverTheyAreCut) {
  std::string bytes = SpdyTestPeer::Reply(1) + SpdyTestPeer::Reply(3);
  SpdyWriter::Data(bytes, 3, "hello", false);
  SpdyWriter::Ping(bytes, 2);
  SpdyWriter::Data(bytes, 3, "", true);
  SpdyWriter::RstStream(bytes, 1, 5);
  bytes += std::string("\x80\x03\x00\x04\x00\x00\x00\x0c", 8) + std::string(12, 's');  // SETTINGS
  bytes += std::string("\x80\x03\x00\x09\x00\x00\x00\x08", 8) + std::string(8, 'w');   // WINDOW_UPDATE
  SpdyWriter::GoAway(bytes, 0, 0);
  for (size_t step : {size_t{5}, size_t{6}, bytes.size()}) {
    Seen seen;
    for (size_t at = 0; at < bytes.size(); at += step) {
      ASSERT_TRUE(seen.parser.Feed(std::string_view(bytes).substr(at, step)));
    }
    std::string joined;  // pieces of one frame are pieces of one stream
    for (size_t at = 0; at < seen.log.size(); ++at) joined += seen.log[at];
    if (step == bytes.size()) {
      EXPECT_EQ(joined, "reply(1)reply(3)3:hello,ping(2)3:.reset(1)goaway");
    }
    EXPECT_NE(joined.find("goaway"), std::string::npos);
  }
}

TEST(Spdy, SurvivesNoise) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    Seen seen;
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (round % 2 && bytes.size() > 8) bytes.replace(0, 3, std::string("\x80\x03\x00", 3));
    [[maybe_unused]] auto whole = seen.parser.Feed(bytes);
  }
}

}  // namespace
}  // namespace keelson::http
