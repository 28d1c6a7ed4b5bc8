// What peers that are not ours send: raw bytes over sockets, valid and not.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "lib/base/fd.h"
#include "lib/http/http_fixture.h"

namespace keelson::http {
namespace {

class Raw {
 public:
  explicit Raw(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{10, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  bool Send(std::string_view bytes) {
    return send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  void HalfClose() { shutdown(fd_.get(), SHUT_WR); }
  // Until the peer closes.
  std::string ReadAll() {
    std::string out;
    char buffer[4096];
    ssize_t n;
    while ((n = recv(fd_.get(), buffer, sizeof buffer, 0)) > 0) out.append(buffer, static_cast<size_t>(n));
    return out;
  }
  std::string ReadUntil(const std::string& mark) {
    std::string out;
    char c;
    while (out.find(mark) == std::string::npos && recv(fd_.get(), &c, 1, 0) == 1) out += c;
    return out;
  }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

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
      {"noise", "\x16\x03\x01\x02\x00\x01\r\n\r\n", "400", ""},
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
    Raw raw(server.port());
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
  Raw raw(server.port());
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
  Raw raw(server.port());
  raw.Send(
      "POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: "
      "close\r\n\r\n");
  EXPECT_EQ(raw.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  raw.Send("abc");
  EXPECT_EQ(BodyOf(raw.ReadAll()), "/e|abc");
  Raw large(server.port());
  large.Send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3000\r\n\r\n");
  EXPECT_EQ(large.ReadAll().substr(0, 12), "HTTP/1.1 413");
}

TEST(Hostile, SlowHeadsAreCut) {
  ServerOptions options;
  options.header_timeout = std::chrono::seconds(1);
  RunningServer server(Echo, options);
  Raw raw(server.port());
  raw.Send("GET / HTTP/1.1\r\nHost");
  EXPECT_EQ(raw.ReadAll(), "");
}

TEST(Hostile, NoiseDoesNotDisturbOthers) {
  RunningServer server(Echo);
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Raw raw(server.port());
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

// A TLS connection that has negotiated h2, and says what it likes.
class RawHttp2 {
 public:
  explicit RawHttp2(uint16_t port) : raw_(port), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    const unsigned char alpn[] = "\x02h2";
    SSL_CTX_set_alpn_protos(context_.get(), alpn, 3);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), raw_.fd());
    EXPECT_EQ(SSL_connect(ssl_.get()), 1);
  }
  bool Send(std::string_view bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }

 private:
  Raw raw_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_{nullptr, SSL_free};
};

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out;
  for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> shift & 0xff);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> shift & 0xff);
  return out.append(payload);
}

TEST(Hostile, Http2Noise) {
  signal(SIGPIPE, SIG_IGN);
  TestPki pki;
  RunningServer server(Echo, TlsOptions(pki));
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "");
  // :method GET, :scheme https, :path /, :authority x
  const std::string get("\x82\x87\x84\x41\x01x", 6);
  std::mt19937 random(5);
  for (int round = 0; round < 120; ++round) {
    RawHttp2 raw(server.port());
    std::string bytes = round % 4 ? preface : "";
    uint32_t stream = 1;
    for (int i = 0; i < 30; ++i) {
      std::string payload;
      for (size_t n = random() % 40; n > 0; --n) payload += static_cast<char>(random());
      switch (random() % 4) {
        case 0:
          bytes += Frame(1, 5, stream, get);  // a good request
          stream += 2;
          break;
        case 1:
          bytes +=
              Frame(1, 5, stream, get) + Frame(3, 0, stream, std::string("\0\0\0\x08", 4));  // and its reset
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
  ClientOptions options;
  options.base_url = server.Url("https");
  options.tls.ca_pem = pki.ca_pem();
  auto response = NewClient(options)->Do({"GET", "/ok", {}, ""}, kSoon);
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->body, "/ok|");
}

TEST(Hostile, RapidResetsRunOut) {
  signal(SIGPIPE, SIG_IGN);
  TestPki pki;
  std::atomic<int> handled{0};
  RunningServer server(
      [&](auto, auto writer) {
        ++handled;
        writer->Reply(200, {}, "x");
      },
      TlsOptions(pki));
  RawHttp2 raw(server.port());
  raw.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, ""));
  const std::string get("\x82\x87\x84\x41\x01x", 6);
  bool cut = false;
  for (uint32_t stream = 1; stream < 400000 && !cut; stream += 2) {
    cut = !raw.Send(Frame(1, 5, stream, get) + Frame(3, 0, stream, std::string("\0\0\0\x08", 4)));
  }
  EXPECT_TRUE(cut);
}

}  // namespace
}  // namespace keelson::http
