// Client and server against each other, over every transport.
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <set>

#include "lib/base/file.h"
#include "lib/http/testing/fixture.h"

namespace keelson::http {
namespace {

using std::chrono::milliseconds;

INSTANTIATE_TEST_SUITE_P(Wires, HttpTest,
                         ::testing::Values(Wire{"plain1", false, false}, Wire{"tls1", true, false},
                                           Wire{"tls2", true, true}),
                         [](const auto& wire) { return wire.param.name; });

void Echo(std::shared_ptr<const ServerRequest> request, std::shared_ptr<ResponseWriter> writer) {
  std::string body = request->method + " " + request->path + " [" + std::string(request->query.Get("q")) +
                     "] " + request->body;
  writer->Reply(200, {{"Content-Type", "text/plain"}, {"X-Major", std::to_string(request->http_major)}},
                body);
}

TEST_P(HttpTest, EchoesRequests) {
  Serve(Echo);
  for (int i = 0; i < 5; ++i) {
    auto response =
        client_->Do({"POST", "/a%20b/c?q=x%26y&z", {{"X-A", "1"}}, "body" + std::to_string(i)}, kSoon);
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "POST /a b/c [x&y] body" + std::to_string(i));
    EXPECT_EQ(response->headers.Get("content-type"), "text/plain");
    EXPECT_EQ(response->headers.Get("x-major"), GetParam().http2 ? "2" : "1");
    EXPECT_FALSE(response->headers.Get("date").empty());
  }
}

TEST_P(HttpTest, HeadAndEmptyReplies) {
  Serve([](auto request, auto writer) {
    if (request->path == "/204") return writer->Reply(204, {}, "");
    writer->Reply(200, {}, "12345");
  });
  auto head = client_->Do({"HEAD", "/", {}, ""}, kSoon);
  ASSERT_TRUE(head) << head.error().message();
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(head->headers.Get("content-length"), "5");
  auto none = client_->Do({"GET", "/204", {}, ""}, kSoon);
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_EQ(none->status, 204);
  auto get = client_->Do({"GET", "/", {}, ""}, kSoon);
  ASSERT_TRUE(get) << get.error().message();
  EXPECT_EQ(get->body, "12345");
}

TEST_P(HttpTest, LargeBodiesBothWays) {
  ServerOptions options;
  options.max_body = 32u << 20;
  Serve([](auto request, auto writer) { writer->Reply(200, {}, request->body); }, options);
  std::string big(20u << 20, 'x');
  for (size_t i = 0; i < big.size(); i += 997) big[i] = static_cast<char>(i % 251);
  auto response = client_->Do({"POST", "/", {}, big}, std::chrono::seconds(30));
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_TRUE(response->body == big);
}

TEST_P(HttpTest, SharedPartsArriveInOrder) {
  auto part = std::make_shared<const std::string>(std::string(100000, 'p'));
  Serve([&](auto, auto writer) {
    std::vector<std::shared_ptr<const std::string>> parts;
    for (int i = 0; i < 30; ++i) {
      parts.push_back(std::make_shared<const std::string>(std::to_string(i) + ","));
      parts.push_back(part);
    }
    writer->ReplyShared(200, {}, std::move(parts));
  });
  auto response = client_->Do({"GET", "/", {}, ""}, kSoon);
  ASSERT_TRUE(response) << response.error().message();
  std::string expected;
  for (int i = 0; i < 30; ++i) expected += std::to_string(i) + "," + *part;
  EXPECT_TRUE(response->body == expected);
}

TEST_P(HttpTest, BodyOverTheLimitIs413) {
  ServerOptions options;
  options.max_body = 1000;
  Serve(Echo, options);
  auto response = client_->Do({"POST", "/", {}, std::string(5000, 'x')}, kSoon);
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->status, 413);
  auto after = client_->Do({"POST", "/", {}, std::string(900, 'x')}, kSoon);
  ASSERT_TRUE(after) << after.error().message();
  EXPECT_EQ(after->status, 200);
}

TEST_P(HttpTest, StreamsPieceByPiece) {
  std::promise<std::shared_ptr<ResponseWriter>> writer_promise;
  Serve([&](auto, auto writer) {
    writer->Start(200, {{"Content-Type", "text/event"}});
    writer_promise.set_value(writer);
  });
  auto reader = client_->Open({"GET", "/watch", {}, ""}, kSoon);
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ((*reader)->status(), 200);
  auto writer = writer_promise.get_future().get();
  EXPECT_TRUE((*reader)->Read({}, milliseconds(5)).error().Is(Code::kTimeout));
  for (int i = 0; i < 3; ++i) {
    std::string text = "event " + std::to_string(i);
    EXPECT_TRUE(writer->Write(std::make_shared<const std::string>(text)));
    auto piece = (*reader)->Read({}, kSoon);
    ASSERT_TRUE(piece) << piece.error().message();
    EXPECT_EQ(*piece, text);
  }
  std::promise<void> closed;
  writer->OnClose([&] { closed.set_value(); });
  writer->Finish();
  auto end = (*reader)->Read({}, kSoon);
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_EQ(*end, "");
  EXPECT_EQ(closed.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_TRUE(writer->closed());
}

TEST_P(HttpTest, ClientThatLeavesClosesTheWriter) {
  std::promise<void> closed;
  Serve([&](auto, auto writer) {
    writer->Start(200, {});
    writer->OnClose([&closed, writer] { closed.set_value(); });
  });
  auto reader = client_->Open({"GET", "/", {}, ""}, kSoon);
  ASSERT_TRUE(reader) << reader.error().message();
  reader->reset();
  EXPECT_EQ(closed.get_future().wait_for(kSoon), std::future_status::ready);
}

TEST_P(HttpTest, UnfinishedResponseIsCut) {
  Serve([](auto request, auto writer) {
    if (request->path == "/none") return;
    writer->Start(200, {});
    writer->Write(std::make_shared<const std::string>("half"));
  });
  auto half = client_->Do({"GET", "/half", {}, ""}, kSoon);
  ASSERT_FALSE(half);
  EXPECT_TRUE(half.error().Is(Code::kUnavailable)) << half.error().message();
  EXPECT_FALSE(client_->Do({"GET", "/none", {}, ""}, kSoon));
}

TEST_P(HttpTest, SlowReaderHoldsTheServerBack) {
  std::promise<std::shared_ptr<ResponseWriter>> writer_promise;
  Serve([&](auto, auto writer) {
    writer->Start(200, {});
    writer_promise.set_value(writer);
  });
  auto reader = client_->Open({"GET", "/", {}, ""}, kSoon);
  ASSERT_TRUE(reader) << reader.error().message();
  auto writer = writer_promise.get_future().get();
  auto block = std::make_shared<const std::string>(std::string(1 << 20, 'b'));
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(writer->Write(block));
  EXPECT_GT(writer->queued_bytes(), 10u << 20);
  writer->Finish();
  size_t total = 0;
  for (;;) {
    auto piece = (*reader)->Read({}, kSoon);
    ASSERT_TRUE(piece) << piece.error().message();
    if (piece->empty()) break;
    total += piece->size();
  }
  EXPECT_EQ(total, 40u << 20);
}

TEST_P(HttpTest, TimeoutAndStopEndAWaitingCall) {
  std::vector<std::shared_ptr<ResponseWriter>> kept;
  std::mutex mutex;
  Serve([&](auto, auto writer) {
    std::lock_guard lock(mutex);
    kept.push_back(writer);
  });
  auto late = client_->Do({"GET", "/", {}, ""}, milliseconds(20));
  EXPECT_TRUE(late.error().Is(Code::kTimeout)) << late.error().message();
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  auto stopped = client_->Do({"GET", "/", {}, ""}, kSoon, stop.get_token());
  EXPECT_TRUE(stopped.error().Is(Code::kCancelled)) << stopped.error().message();
  auto head_late = client_->Open({"GET", "/", {}, ""}, milliseconds(20));
  EXPECT_TRUE(head_late.error().Is(Code::kTimeout));
  server_->Stop();
}

TEST_P(HttpTest, StartedRequestsRunSideBySide) {
  std::vector<std::shared_ptr<ResponseWriter>> kept;
  std::mutex mutex;
  // The server answers none before all three have arrived.
  Serve([&](auto, auto writer) {
    std::lock_guard lock(mutex);
    kept.push_back(writer);
    if (kept.size() < 3) return;
    for (auto& one : kept) one->Reply(200, {}, "all");
  });
  std::vector<std::unique_ptr<PendingResponse>> pending;
  for (int i = 0; i < 3; ++i) pending.push_back(client_->Start({"POST", "/", {}, "x"}));
  for (auto& one : pending) {
    auto response = one->Await(kSoon);
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->body, "all");
  }
}

TEST_P(HttpTest, ResponsesAreBounded) {
  Serve([](auto, auto writer) { writer->Reply(200, {}, std::string(1 << 20, 'x')); });
  ClientRequest request;
  request.max_response_body = 1000;
  auto refused = client_->Do(request, kSoon);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kTooLarge) << refused.error().message();
  request.max_response_body = 1 << 20;
  EXPECT_TRUE(client_->Do(request, kSoon));
}

TEST_P(HttpTest, ManyAtOnce) {
  Serve(Echo);
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          std::string body = std::to_string(t * 1000 + i);
          auto response = client_->Do({"PUT", "/x", {}, body}, kSoon);
          if (response && response->body == "PUT /x [] " + body) ++good;
        }
      });
    }
  }
  EXPECT_EQ(good, 400);
}

TEST_P(HttpTest, RestartedServerIsReachedAgain) {
  Serve(Echo);
  ASSERT_TRUE(client_->Do({"GET", "/", {}, ""}, kSoon));
  ServerOptions options;
  options.port = server_->port();
  if (GetParam().tls) options.tls = TlsOptions(pki_).tls;
  server_->Stop();
  server_.reset();
  EXPECT_FALSE(client_->Do({"GET", "/", {}, ""}, kSoon));
  server_ = std::make_unique<RunningServer>(Echo, options);
  auto again = client_->Do({"POST", "/again", {}, "x"}, kSoon);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->body, "POST /again [] x");
}

TEST_P(HttpTest, UpgradeHandsOverTheBytes) {
  Serve([](auto request, auto writer) {
    if (request->path == "/no") return writer->Reply(403, {}, "not you");
    auto stream = writer->Upgrade({{"Connection", "Upgrade"}, {"Upgrade", "echo"}});
    ASSERT_TRUE(stream) << stream.error().message();
    struct Loop {
      static void Go(std::shared_ptr<Stream> s) {
        s->AsyncRead([s](Result<std::string> data) {
          if (!data) return;
          if (data->empty()) return s->ShutdownWrite();
          s->AsyncWrite(*data, [s](Result<>) { Go(s); });
        });
      }
    };
    Loop::Go(std::shared_ptr<Stream>(std::move(*stream)));
  });
  auto refused = client_->Upgrade({"GET", "/no", {{"Upgrade", "echo"}}, ""}, kSoon);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().Is(Code::kForbidden));
  EXPECT_EQ(refused.error().message(), "not you");
  auto upgraded = client_->Upgrade({"GET", "/yes", {{"Upgrade", "echo"}}, ""}, kSoon);
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  EXPECT_EQ(upgraded->headers.Get("upgrade"), "echo");
  std::promise<void> written;
  upgraded->stream->AsyncWrite("hello", [&](Result<> r) {
    EXPECT_TRUE(r);
    written.set_value();
  });
  written.get_future().wait();
  std::promise<std::string> echoed;
  upgraded->stream->AsyncRead([&](Result<std::string> r) { echoed.set_value(r.value_or("failed")); });
  EXPECT_EQ(echoed.get_future().get(), "hello");
  upgraded->stream->ShutdownWrite();
  std::promise<std::string> end;
  upgraded->stream->AsyncRead([&](Result<std::string> r) { end.set_value(r.value_or("failed")); });
  EXPECT_EQ(end.get_future().get(), "");
}

TEST_P(HttpTest, StopEndsRunningStreamsAndReleasesWriters) {
  std::promise<std::shared_ptr<ResponseWriter>> writer_promise;
  Serve([&](auto, auto writer) {
    writer->Start(200, {});
    writer_promise.set_value(writer);
  });
  auto reader = client_->Open({"GET", "/", {}, ""}, kSoon);
  ASSERT_TRUE(reader);
  auto writer = writer_promise.get_future().get();
  server_->Stop();
  EXPECT_TRUE(writer->closed());
  EXPECT_FALSE(writer->Write(std::make_shared<const std::string>("x")));
  EXPECT_FALSE((*reader)->Read({}, kSoon));
  server_.reset();
}

TEST(HttpTls, ClientCertificatesAreSeenWhenTheyVerify) {
  crypto::TestPki pki, stranger;
  RunningServer server(
      [](auto request, auto writer) {
        if (!request->peer) return writer->Reply(200, {}, "nobody");
        const crypto::PeerCertificate& peer = *request->peer;
        writer->Reply(200, {},
                      peer.common_name + "/" + peer.organizations[0] + "/" + peer.organizations[1] + "/" +
                          peer.dns_names.at(0) + "/" + peer.uris.at(0) + "/" +
                          std::to_string(peer.sha256_fingerprint.size()));
      },
      TlsOptions(pki));
  crypto::TestCertificate good = pki.Client("system:node:n1", {"system:nodes", "extra"});
  crypto::TestCertificate bad = stranger.Client("admin", {"system:masters", "x"});
  struct Case {
    crypto::TestCertificate certificate;
    std::string expected;
  } cases[] = {
      {good, "system:node:n1/system:nodes/extra/client.example/spiffe://example/client/64"},
      {{}, "nobody"},
      {bad, "nobody"},
  };
  for (bool http2 : {false, true}) {
    for (const Case& c : cases) {
      ClientOptions options;
      options.base_url = server.Url("https");
      options.http2 = http2;
      options.tls.ca_pem = pki.ca_pem();
      options.tls.certificate_pem = c.certificate.certificate_pem;
      options.tls.key_pem = c.certificate.key_pem;
      auto response = NewClient(options)->Do({}, kSoon);
      ASSERT_TRUE(response) << response.error().message();
      EXPECT_EQ(response->body, c.expected);
    }
  }
}

TEST(HttpTls, ServerIsVerified) {
  crypto::TestPki pki, other;
  RunningServer server(Echo, TlsOptions(pki));
  struct Case {
    std::string ca, name;
    bool insecure, good;
  } cases[] = {
      {pki.ca_pem(), "", false, true},           {pki.ca_pem(), "localhost", false, true},
      {pki.ca_pem(), "elsewhere", false, false}, {other.ca_pem(), "", false, false},
      {other.ca_pem(), "", true, true},          {"", "", false, false},
  };
  for (const Case& c : cases) {
    ClientOptions options;
    options.base_url = server.Url("https");
    options.tls.ca_pem = c.ca;
    options.tls.server_name = c.name;
    options.tls.insecure_skip_verify = c.insecure;
    auto response = NewClient(options)->Do({}, kSoon);
    EXPECT_EQ(response.has_value(), c.good) << c.name;
    if (!response) {
      EXPECT_TRUE(response.error().Is(Code::kUnavailable)) << response.error().message();
    }
  }
}

TEST(HttpTls, ReloadServesTheNewCertificate) {
  crypto::TestPki pki;
  RunningServer server(Echo, TlsOptions(pki));
  ClientOptions options;
  options.base_url = server.Url("https");
  options.tls.ca_pem = pki.ca_pem();
  ASSERT_TRUE(NewClient(options)->Do({}, kSoon));
  pki.RenewServer();
  EXPECT_TRUE(server.server().ReloadTls());
  EXPECT_TRUE(NewClient(options)->Do({}, kSoon));
  ASSERT_TRUE(WriteFile(pki.server_cert_file(), "rubbish"));
  EXPECT_FALSE(server.server().ReloadTls());
  EXPECT_TRUE(NewClient(options)->Do({}, kSoon));
}

TEST(HttpTls, CertificatesGoByTheNameThatIsAskedFor) {
  crypto::TestPki pki, other;  // both have certificates for localhost and 127.0.0.1
  ServerOptions options = TlsOptions(pki);
  options.tls->named = {{other.server_cert_file(), other.server_key_file(), {"localhost"}}};
  const auto answers = [](const RunningServer& server, const std::string& name,
                          const crypto::TestPki& trusted) {
    ClientOptions client;
    client.base_url = server.Url("https");
    client.tls.ca_pem = trusted.ca_pem();
    client.tls.server_name = name;
    return NewClient(client)->Do({}, kSoon).has_value();
  };
  const RunningServer by_flag(Echo, options);
  EXPECT_TRUE(answers(by_flag, "localhost", other));
  EXPECT_FALSE(answers(by_flag, "localhost", pki));
  EXPECT_TRUE(answers(by_flag, "", pki)) << "an address is not asked for by name";
  options.tls->named[0].names.clear();
  const RunningServer by_certificate(Echo, options);
  EXPECT_TRUE(answers(by_certificate, "localhost", other));
  EXPECT_TRUE(answers(by_certificate, "", pki)) << "addresses of a certificate are not among its names";
  options.tls->named[0].names = {"127.0.0.1"};
  const RunningServer by_address(Echo, options);
  EXPECT_TRUE(answers(by_address, "", other));
  EXPECT_TRUE(answers(by_address, "localhost", pki));
}

TEST(HttpTls, NamedCertificatesAreChecked) {
  crypto::TestPki pki, other;
  ServerOptions options = TlsOptions(pki);
  options.tls->named = {{other.server_cert_file(), pki.server_key_file(), {}}};
  EXPECT_FALSE(Server::Listen(options, Echo)) << "the key of another certificate";
  options.tls->named = {{"/no/such/file", other.server_key_file(), {"localhost"}}};
  EXPECT_FALSE(Server::Listen(options, Echo));
}

TEST(HttpTls, ClientsAreSentAwayByChance) {
  crypto::TestPki pki;
  std::mutex mutex;
  std::set<std::string> peers;
  ServerOptions options = TlsOptions(pki);
  options.goaway_chance = 1;
  RunningServer server(
      [&](auto request, auto writer) {
        {
          std::lock_guard lock(mutex);
          peers.insert(request->remote_address);
        }
        writer->Reply(200, {}, "ok");
      },
      options);
  ClientOptions to;
  to.base_url = server.Url("https");
  to.tls.ca_pem = pki.ca_pem();
  auto client = NewClient(to);
  for (int i = 0; i < 3; ++i) {
    auto response = client->Do({}, kSoon);
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->body, "ok");
  }
  EXPECT_EQ(peers.size(), 3u) << "each request has a connection of its own";
}

TEST(HttpServer, SharesAPortWhereItMay) {
  ServerOptions options;
  options.reuse_port = true;
  RunningServer first(Echo, options);
  options.port = first.port();
  EXPECT_TRUE(Server::Listen(options, Echo));
  options.reuse_port = false;
  EXPECT_FALSE(Server::Listen(options, Echo));
}

TEST(HttpClient, BadAddresses) {
  EXPECT_FALSE(Client::Create({"ftp://x", {}, true, kSoon}));
  EXPECT_FALSE(Client::Create({"http://:80", {}, true, kSoon}));
  auto refused = NewClient({"http://127.0.0.1:1", {}, true, kSoon})->Do({}, kSoon);
  EXPECT_TRUE(refused.error().Is(Code::kUnavailable)) << refused.error().message();
  auto no_socket = NewClient({"unix:///no/such/socket", {}, true, kSoon})->Do({}, kSoon);
  EXPECT_TRUE(no_socket.error().Is(Code::kUnavailable)) << no_socket.error().message();
  auto no_host = NewClient({"http://no-such-host.invalid:80", {}, true, milliseconds(3000)})->Do({}, kSoon);
  EXPECT_TRUE(no_host.error().Is(Code::kUnavailable)) << no_host.error().message();
}

}  // namespace
}  // namespace keelson::http
