// Hostile HTTP/2 peers: floods of frames, streams that lie, windows that stay closed. Whatever they do, the
// server holds little memory for them and serves other clients.
#include <gtest/gtest.h>

#include <random>

#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/http/testing/fixture.h"
#include "lib/http/testing/hostile_peer.h"

namespace keelson::http {
namespace {

void Answer(std::shared_ptr<const ServerRequest> request, std::shared_ptr<ResponseWriter> writer) {
  writer->Reply(200, {}, request->path + "|" + request->body);
}

void ExpectServed(const RunningServer& server, const crypto::TestPki& pki,
                  const std::string& target = "/ok") {
  ClientOptions options;
  options.base_url = server.Url("https");
  options.tls.ca_pem = pki.ca_pem();
  auto response = NewClient(options)->Do({"GET", target, {}, ""}, kSoon);
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->status, 200);
}

// Keeps every request without an answer, except for /ok.
struct Silence {
  Mutex mutex;
  std::vector<std::shared_ptr<ResponseWriter>> writers KEELSON_GUARDED_BY(mutex);
  Handler handler() {
    return [this](auto request, auto writer) {
      if (request->path == "/ok") return writer->Reply(200, {}, "ok");
      MutexLock lock(mutex);
      writers.push_back(std::move(writer));
    };
  }
};

std::string Number32(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

// Resident memory of this process in MB. Under a sanitizer the number is meaningless.
size_t Resident() {
#ifdef KEELSON_SANITIZED
  return 0;
#endif
  std::string text = *ReadFile("/proc/self/statm");
  return std::stoul(text.substr(text.find(' '))) * 4096 >> 20;
}

TEST(Http2Connections, HaveAsManyStreamsAsTheyMay) {
  crypto::TestPki pki;
  ServerOptions options = TlsOptions(pki);
  options.max_streams = 7;
  RunningServer server(Answer, options);
  RawTls raw(server.port());
  ASSERT_TRUE(raw.Send(kHttp2Preface));
  const auto settings = raw.Await(kSettings);
  ASSERT_TRUE(settings);
  constexpr const char kMaxConcurrentStreams[] = "\0\3";
  EXPECT_NE(settings->payload.find(std::string(kMaxConcurrentStreams, 2) + Number32(7)), std::string::npos);
}

TEST(Http2Connections, AnswerWhatTheyHaveTakenAfterAGoAway) {
  crypto::TestPki pki;
  ServerOptions options = TlsOptions(pki);
  options.goaway_chance = 1;
  RunningServer server(Answer, options);
  RawTls raw(server.port());
  ASSERT_TRUE(raw.Send(kHttp2Preface + Frame(kHeaders, 0x5, 1, kHttp2Get)));
  const auto away = raw.Await(kGoAway);
  ASSERT_TRUE(away);
  EXPECT_EQ(away->payload, Number32(1) + Number32(0)) << "stream 1 is the last one; there is no error";
  std::string body;
  while (auto frame = raw.Read()) {
    if (frame->type == kData && frame->stream == 1) body += frame->payload;
  }
  EXPECT_EQ(body, "/|") << "and then the connection ends";
}

TEST(HostileHttp2, Noise) {
  crypto::TestPki pki;
  RunningServer server(Answer, TlsOptions(pki));
  std::mt19937 random(5);
  for (int round = 0; round < 120; ++round) {
    RawTls raw(server.port());
    std::string bytes = round % 4 ? kHttp2Preface : "";
    uint32_t stream = 1;
    for (int i = 0; i < 30; ++i) {
      std::string payload;
      for (size_t n = random() % 40; n > 0; --n) payload += static_cast<char>(random());
      switch (random() % 4) {
        case 0:
          bytes += Frame(1, 5, stream, kHttp2Get);  // a good request
          stream += 2;
          break;
        case 1:
          bytes += Frame(1, 5, stream, kHttp2Get) +
                   Frame(3, 0, stream, std::string("\0\0\0\x08", 4));  // and its reset
          stream += 2;
          break;
        case 2:
          bytes += Frame(static_cast<uint8_t>(random() % 12), static_cast<uint8_t>(random()), random() % 9,
                         payload);
          break;
        default:
          bytes += Frame(8, 0, 0, std::string("\0\0\x01\0", 4));
      }
    }
    raw.Send(bytes);
  }
  ExpectServed(server, pki);
}

// A peer that reads nothing and sends one kind of frame again and again.
TEST(HostileHttp2, FloodsAreCut) {
  crypto::TestPki pki;
  Silence silence;
  RunningServer server(silence.handler(), TlsOptions(pki));
  struct Case {
    const char* name;
    std::string first;
    std::string (*next)(uint32_t i);
  } cases[] = {
      {"pings", "", [](uint32_t) { return Frame(kPing, 0, 0, "12345678"); }},
      {"settings", "",
       [](uint32_t i) { return Frame(kSettings, 0, 0, std::string("\0\4", 2) + Number32(i % 1000)); }},
      {"continuations", Frame(kHeaders, 1, 1, kHttp2Get),
       [](uint32_t) { return Frame(kContinuation, 0, 1, std::string("\0\1a\1b", 5)); }},
      {"resets", "",
       [](uint32_t i) {
         return Frame(kHeaders, 5, 2 * i + 1, kHttp2Get) + Frame(kRstStream, 0, 2 * i + 1, Number32(8));
       }},
      {"what has to be reset", "",
       [](uint32_t i) {
         return Frame(kHeaders, 5, 2 * i + 1, kHttp2Get) +
                Frame(kWindowUpdate, 0, 2 * i + 1, Number32(0x7fffffff));
       }},
      {"more streams than there may be", "",
       [](uint32_t i) { return Frame(kHeaders, 5, 2 * i + 1, kHttp2Get); }},
  };
  const size_t before = Resident();
  for (const Case& c : cases) {
    RawTls raw(server.port());
    raw.Send(kHttp2Preface + c.first);
    bool cut = false;
    for (uint32_t i = 0; i < 3000000 && !cut; i += 20) {
      std::string bytes;
      for (uint32_t j = i; j < i + 20; ++j) bytes += c.next(j);
      cut = !raw.Send(bytes);
    }
    EXPECT_TRUE(cut) << c.name;
    ExpectServed(server, pki);
    MutexLock lock(silence.mutex);
    silence.writers.clear();
  }
  EXPECT_LT(Resident(), before + 100);
}

// One literal header of three kilobytes, then one byte for each reference to it.
std::string LongHeaders(int times) {
  return kHttp2Get +
         "\x40\x01"
         "a"
         "\x7f\xb9\x16" +
         std::string(3000, 'v') + std::string(static_cast<size_t>(times - 1), '\xbe');
}

TEST(HostileHttp2, LongHeadersAreRefused) {
  crypto::TestPki pki;
  RunningServer server(Answer, TlsOptions(pki));
  RawTls raw(server.port());
  raw.Send(kHttp2Preface + Frame(kHeaders, 5, 1, LongHeaders(80)));
  std::optional<Http2Frame> reply = raw.Await(kHeaders);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->payload.substr(0, 1), "\x88");  // :status 200
  raw.Send(Frame(kHeaders, 5, 3, LongHeaders(90)));
  reply = raw.Await(kHeaders);
  ASSERT_TRUE(reply);
  EXPECT_NE(reply->payload.substr(0, 1), "\x88");
  reply = raw.Await(kData);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->payload, "request header fields too large\n");
}

// Heads that are small on the wire and large in memory, on requests that never end.
TEST(HostileHttp2, OpenRequestsHoldLittle) {
  crypto::TestPki pki;
  RunningServer server(Answer, TlsOptions(pki));
  const size_t before = Resident();
  RawTls raw(server.port());
  const std::string again = "\x82\x87\x84\xbf" + std::string(80, '\xbe');  // by index into the dynamic table
  std::string bytes = kHttp2Preface;
  for (uint32_t i = 0; i < 300; ++i) bytes += Frame(kHeaders, 4, 2 * i + 1, i == 0 ? LongHeaders(80) : again);
  ASSERT_TRUE(raw.Send(bytes));
  // All but the first exceed what one connection may hold.
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(raw.Await(kHeaders)) << i;
  EXPECT_LT(Resident(), before + 60);
  ExpectServed(server, pki);
}

TEST(HostileHttp2, RequestsThatDoNotEndAreReset) {
  crypto::TestPki pki;
  ServerOptions options = TlsOptions(pki);
  options.idle_timeout = std::chrono::seconds(1);
  RunningServer server(Answer, options);
  RawTls raw(server.port());
  raw.Send(kHttp2Preface + Frame(kHeaders, 4, 1, kHttp2Get) + Frame(kData, 0, 1, "begun"));
  std::optional<Http2Frame> reset = raw.Await(kRstStream);
  ASSERT_TRUE(reset);
  EXPECT_EQ(reset->stream, 1u);
  EXPECT_TRUE(raw.Await(kGoAway));  // without streams the connection closes
}

// The peer keeps the connection alive and its windows closed.
TEST(HostileHttp2, ResponsesThatNobodyReadsAreReset) {
  crypto::TestPki pki;
  ServerOptions options = TlsOptions(pki);
  options.idle_timeout = std::chrono::seconds(1);
  std::promise<void> gone;
  RunningServer server(
      [&](auto request, auto writer) {
        if (request->path == "/ok") return writer->Reply(200, {}, "ok");
        writer->OnClose([&] { gone.set_value(); });
        writer->Reply(200, {}, std::string(100 << 10, 'x'));
      },
      options);
  RawTls raw(server.port());
  raw.Send(kHttp2Preface + Frame(kSettings, 0, 0, std::string("\0\4\0\0\0\0", 6)) +
           Frame(kHeaders, 5, 1, kHttp2Get));
  ASSERT_TRUE(raw.Await(kHeaders));
  ASSERT_TRUE(raw.Await(kRstStream));
  EXPECT_EQ(gone.get_future().wait_for(kSoon), std::future_status::ready);
  ExpectServed(server, pki);
}

// A watch may have nothing to send for a long time.
TEST(HostileHttp2, QuietResponsesStay) {
  crypto::TestPki pki;
  ServerOptions options = TlsOptions(pki);
  options.idle_timeout = std::chrono::seconds(1);
  std::promise<std::shared_ptr<ResponseWriter>> watch;
  RunningServer server([&](auto, auto writer) { watch.set_value(std::move(writer)); }, options);
  RawTls raw(server.port());
  raw.Send(kHttp2Preface + Frame(kHeaders, 5, 1, kHttp2Get));
  std::shared_ptr<ResponseWriter> writer = watch.get_future().get();
  writer->Start(200, {});
  ASSERT_TRUE(raw.Await(kHeaders));
  // Another connection that becomes idle now ends by the same rule, later than this one would have.
  RawTls idle(server.port());
  idle.Send(kHttp2Preface);
  ASSERT_TRUE(idle.Await(kGoAway));
  EXPECT_FALSE(writer->closed());
  writer->Write(std::make_shared<const std::string>("news"));
  std::optional<Http2Frame> data = raw.Await(kData);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->payload, "news");
  writer->Finish();
}

}  // namespace
}  // namespace keelson::http
