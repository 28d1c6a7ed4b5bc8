// Hostile peers: raw bytes over sockets, valid and invalid.
#include <gtest/gtest.h>
#include <poll.h>

#include <random>

#include "lib/http/testing/fixture.h"
#include "lib/http/testing/hostile_peer.h"

namespace keelson::http {
namespace {

void Echo(std::shared_ptr<const ServerRequest> request, std::shared_ptr<ResponseWriter> writer) {
  if (request->path == "/stream") {
    writer->Start(200, {});
    writer->Write(std::make_shared<const std::string>("piece"));
    return writer->Finish();
  }
  writer->Reply(200, {{"X-Evil", "a\r\nInjected: yes"}}, request->path + "|" + request->body);
}

std::string BodyOf(const std::string& response) {
  size_t at = response.find("\r\n\r\n");
  return at == std::string::npos ? "" : response.substr(at + 4);
}

TEST(Hostile, OneShotRequests) {
  ServerOptions options;
  options.max_body = 1000;
  RunningServer server(Echo, options);
  struct Case {
    const char* name;
    std::string bytes, status, body;
  } cases[] = {
      {"plain", "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200", "/a|"},
      {"old", "GET /a HTTP/1.0\r\n\r\n", "200", "/a|"},
      {"old stream", "GET /stream HTTP/1.0\r\n\r\n", "200", "piece"},
      {"absolute", "GET http://x/b?c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200", "/b|"},
      {"chunked with trailer",
       "POST /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
       "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nTrailer: 1\r\n\r\n",
       "200", "/c|abcde"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", "400", ""},
      {"no target", "GET HTTP/1.1\r\nHost: x\r\n\r\n", "400", ""},
      {"not a path", "GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n", "400", ""},
      {"noise", std::string("\x16\x03\x01\x02\x00\x01\r\n\r\n", 10), "400", ""},
      {"bad header", "GET / HTTP/1.1\r\nHost x\r\n\r\n", "400", ""},
      {"bad version", "GET / HTTP/9.9\r\nHost: x\r\n\r\n", "400", ""},
      {"two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400",
       ""},
      {"length and chunked",
       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400", ""},
      {"bad chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400", ""},
      {"long body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n", "413", ""},
      {"long chunks",
       "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'x'),
       "413", ""},
      {"long head", "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(300 << 10, 'x') + "\r\n\r\n", "431", ""},
  };
  for (const Case& c : cases) {
    RawPeer raw(server.port());
    raw.Send(c.bytes);
    std::string response = raw.ReadAll();
    EXPECT_EQ(response.substr(0, 12), "HTTP/1.1 " + c.status) << c.name << ": " << response;
    if (c.status == "200") {
      EXPECT_EQ(BodyOf(response), c.body) << c.name;
    }
    EXPECT_EQ(response.find("\nInjected:"), std::string::npos);
  }
}

TEST(Hostile, PipelinedRequestsAreAnsweredInOrder) {
  RunningServer server(Echo);
  RawPeer raw(server.port());
  std::string bytes;
  for (int i = 0; i < 50; ++i) bytes += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  raw.Send(bytes + "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  std::string all = raw.ReadAll();
  size_t at = 0;
  for (int i = 0; i < 50; ++i) {
    at = all.find("/" + std::to_string(i) + "|", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_NE(all.find("/end|", at), std::string::npos);
}

TEST(Hostile, ExpectContinue) {
  ServerOptions options;
  options.max_body = 1000;
  RunningServer server(Echo, options);
  RawPeer raw(server.port());
  raw.Send(
      "POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: "
      "close\r\n\r\n");
  EXPECT_EQ(raw.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  raw.Send("abc");
  EXPECT_EQ(BodyOf(raw.ReadAll()), "/e|abc");
  RawPeer large(server.port());
  large.Send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3000\r\n\r\n");
  EXPECT_EQ(large.ReadAll().substr(0, 12), "HTTP/1.1 413");
}

TEST(Hostile, SlowHeadsAreCut) {
  ServerOptions options;
  options.header_timeout = std::chrono::seconds(1);
  RunningServer server(Echo, options);
  RawPeer raw(server.port());
  raw.Send("GET / HTTP/1.1\r\nHost");
  EXPECT_EQ(raw.ReadAll(), "");
}

// Each byte is progress, but all of them together take too long.
TEST(Hostile, DribbledHeadsAreCut) {
  ServerOptions options;
  options.header_timeout = std::chrono::seconds(1);
  RunningServer server(Echo, options);
  RawPeer raw(server.port());
  const auto begin = std::chrono::steady_clock::now();
  bool cut = false;
  for (std::string_view bytes = "GET / HTTP/1.1\r\nX: "; !cut; bytes = "y") {
    cut = !raw.Send(bytes);
    pollfd closed{raw.fd(), POLLIN, 0};
    cut = cut || poll(&closed, 1, 20) > 0;  // the pace of the dribble
    ASSERT_LT(std::chrono::steady_clock::now() - begin, kSoon);
  }
}

TEST(Hostile, LongHeadsInSmallPieces) {
  RunningServer server(Echo);
  RawPeer raw(server.port());
  raw.Send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: ");
  const std::string piece(10, 'y');
  for (int i = 0; i < 20000; ++i) raw.Send(piece);
  raw.Send("\r\n\r\n");
  EXPECT_EQ(BodyOf(raw.ReadAll()), "/a|");
}

// The message and its form are those of Go's servers.
TEST(Hostile, PlainHttpToTlsIsTold) {
  crypto::TestPki pki;
  RunningServer server(Echo, TlsOptions(pki));
  for (const char* method : {"GET", "POST", "PUT", "HEAD"}) {
    RawPeer raw(server.port());
    raw.Send(std::string(method) + " /api HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n" +
             std::string(5000, 'x'));
    EXPECT_EQ(raw.ReadAll(),
              "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
  }
}

TEST(Hostile, HandshakesEnd) {
  crypto::TestPki pki;
  ServerOptions options = TlsOptions(pki);
  options.header_timeout = std::chrono::seconds(1);
  RunningServer server(Echo, options);
  for (const std::string& bytes :
       {std::string(), std::string("\x16\x03\x01\x02\x00\x01\x00", 7),
        std::string("\x15\x03\x03\x00\x02\x02\x28", 7), std::string("SSH-2.0-x\r\n")}) {
    RawPeer raw(server.port());
    if (!bytes.empty()) raw.Send(bytes);
    EXPECT_LT(raw.ReadAll().size(), 100u);
  }
}

TEST(Hostile, CertificatesOfStrangersAreTold) {
  crypto::TestPki pki, strangers;
  std::atomic<int> refused{0}, known{0};
  RunningServer server(
      [&](auto request, auto writer) {
        ++(request->peer_refused ? refused : known);
        writer->Reply(200, {}, request->peer ? request->peer->common_name : "");
      },
      TlsOptions(pki));
  for (const crypto::TestPki* signer : {&pki, &strangers}) {
    crypto::TestCertificate certificate = signer->Client("admin", {});
    ClientOptions options;
    options.base_url = server.Url("https");
    options.tls.ca_pem = pki.ca_pem();
    options.tls.certificate_pem = certificate.certificate_pem;
    options.tls.key_pem = certificate.key_pem;
    EXPECT_EQ(NewClient(options)->Do({"GET", "/", {}, ""}, kSoon)->body, signer == &pki ? "admin" : "");
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(known, 1);
}

TEST(Hostile, NoiseDoesNotDisturbOthers) {
  RunningServer server(Echo);
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    RawPeer raw(server.port());
    std::string bytes = round % 3 == 0   ? "GET / HTTP/1.1\r\nHost: x\r\n"
                        : round % 3 == 1 ? "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                         : "";
    for (size_t i = random() % 300; i > 0; --i) bytes += static_cast<char>(random());
    raw.Send(bytes);
    if (round % 2) raw.HalfClose();
  }
  auto response = NewClient({server.Url(), {}, true, kSoon})->Do({"GET", "/ok", {}, ""}, kSoon);
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->body, "/ok|");
}

}  // namespace
}  // namespace keelson::http
