// Requests through the proxy to an extension API server: real servers on both sides, and a real client.
#include "controlplane/apiserver/aggregator/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/aggregator/testing/proxy_fixture.h"
#include "lib/base/base64.h"
#include "lib/http/testing/websocket_client.h"

namespace keelson::apiserver {
namespace {

using http::kSoon;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(AggregationProxyTest, TellsTheUserAndNothingThatTheClientClaims) {
  http::Headers seen;
  std::string peer, target, body;
  Serve([&](Requests request, Writer writer) {
    seen = request->headers;
    peer = request->peer ? request->peer->common_name : "";
    target = request->method + " " + request->raw_path + "?" + request->raw_query;
    body = request->body;
    writer->Reply(201, {{"Content-Type", "application/json"}, {"Audit-Id", "theirs"}, {"X-Other", "o"}},
                  "{}");
  });
  Front(Entry());
  http::ClientRequest request;
  request.method = "POST";
  request.target = "/apis/example.com/v1/namespaces/a/th%69ngs%20x?dryRun=All";
  request.body = R"({"kind":"Thing"})";
  request.headers = {{"Authorization", "Bearer secret"},
                     {"X-Remote-User", "admin"},
                     {"x-remote-group", "system:masters"},
                     {"X-Remote-Extra-Scopes", "all"},
                     {"Impersonate-User", "admin"},
                     {"X-Custom-User", "admin"},
                     {"X-Custom-Extra-A", "b"},
                     {"X-Forwarded-For", "192.0.2.1"},
                     {"Audit-Id", "the client's"},
                     {"Content-Type", "application/json"},
                     {"Accept", "application/json"}};
  const http::ClientResponse response = client_->Do(request, kSoon).value();
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "{}");
  EXPECT_EQ(response.headers.Get("X-Other"), "o");
  EXPECT_THAT(response.headers.All("Audit-Id"), ElementsAre("ours"));
  EXPECT_EQ(peer, "front-proxy");
  EXPECT_EQ(target, "POST /apis/example.com/v1/namespaces/a/things%20x?dryRun=All");
  EXPECT_EQ(body, R"({"kind":"Thing"})");
  EXPECT_THAT(seen.All("X-Remote-User"), ElementsAre("jane"));
  EXPECT_THAT(seen.All("X-Remote-Group"), ElementsAre("dev"));
  EXPECT_EQ(seen.Get("X-Forwarded-For"), "192.0.2.1, 127.0.0.1");
  EXPECT_EQ(seen.Get("Accept"), "application/json");
  EXPECT_THAT(seen.All("Audit-Id"), ElementsAre("ours")) << "both servers write of the same request";
  for (const char* gone :
       {"Authorization", "X-Remote-Extra-Scopes", "Impersonate-User", "X-Custom-User", "X-Custom-Extra-A"}) {
    EXPECT_THAT(seen.All(gone), IsEmpty()) << gone;
  }
  EXPECT_THAT(AwaitDone(1), ElementsAre(201));
}

TEST_F(AggregationProxyTest, StreamsArriveAsTheyAreSent) {
  Writer stream;
  std::promise<void> started, gone;
  Serve([&](Requests, Writer writer) {
    writer->OnClose([&] { gone.set_value(); });
    writer->Start(200, {{"Content-Type", "application/json"}});
    stream = std::move(writer);
    started.set_value();
  });
  Front(Entry());
  http::ClientRequest request;
  request.target = "/apis/example.com/v1/things?watch=true";
  auto reader = client_->Open(request, kSoon).value();
  ASSERT_EQ(started.get_future().wait_for(kSoon), std::future_status::ready);
  for (const std::string event : {"{\"type\":\"ADDED\"}\n", "{\"type\":\"DELETED\"}\n"}) {
    stream->Write(std::make_shared<const std::string>(event));
    EXPECT_EQ(reader->Read({}, kSoon).value(), event);
  }
  // The departure of the client ends the request there.
  reader.reset();
  EXPECT_EQ(gone.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(AwaitDone(1).size(), 1u);
  stream.reset();
}

TEST_F(AggregationProxyTest, LongBodiesWaitForTheReader) {
  const std::string piece(1 << 20, 'x');
  constexpr int kPieces = 24;
  Serve([&](Requests, Writer writer) {
    writer->Start(200, {});
    for (int i = 0; i < kPieces; ++i) writer->Write(std::make_shared<const std::string>(piece));
    writer->Finish();
  });
  Front(Entry());
  EXPECT_EQ(Get("/apis/example.com/v1/things").body.size(), piece.size() * kPieces);
}

TEST_F(AggregationProxyTest, UpgradesPassThrough) {
  std::string protocols, user;
  Serve([&](Requests request, Writer writer) {
    protocols = request->headers.Get("Sec-WebSocket-Protocol");
    user = request->headers.Get("X-Remote-User");
    auto stream = writer->Upgrade({{"Connection", "Upgrade"}, {"Upgrade", "echo"}});
    auto shared = std::shared_ptr<http::Stream>(std::move(*stream));
    shared->AsyncRead([shared](Result<std::string> bytes) {
      shared->AsyncWrite("echo: " + bytes.value_or(""), [shared](Result<>) { shared->Close(); });
    });
  });
  Front(Entry());
  http::ClientRequest request;
  request.target = "/apis/example.com/v1/namespaces/a/things/b/connect";
  request.headers = {
      {"Connection", "Upgrade"},
      {"Upgrade", "echo"},
      {"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io"}};
  auto upgraded = client_->Upgrade(request, kSoon);
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  http::BlockingStream wire(std::move(upgraded->stream));
  ASSERT_TRUE(wire.Write("hello"));
  EXPECT_EQ(wire.Read(), "echo: hello");
  EXPECT_EQ(user, "jane");
  EXPECT_EQ(protocols, "v4.channel.k8s.io");
  EXPECT_THAT(AwaitDone(1), ElementsAre(101));
}

TEST_F(AggregationProxyTest, WhatIsNotThereIs503) {
  Front(Entry());  // nobody listens on port 1
  http::ClientResponse response = Get("/apis/example.com/v1/things");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, testing::StartsWith("error trying to reach service: "));
  auto entry = Entry();
  entry->available = false;
  Front(entry);
  response = Get("/apis/example.com/v1/things");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "service unavailable\n");
  entry = Entry();
  entry->service_name = "empty";
  entry->service_port = 443;
  Front(entry);
  response = Get("/apis/example.com/v1/things");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "service unavailable\n");
  EXPECT_THAT(AwaitDone(3), ElementsAre(503, 503, 503));
}

TEST_F(AggregationProxyTest, CertificatesAreVerified) {
  Serve([](Requests, Writer writer) { writer->Reply(200, {}, "ok"); });
  auto entry = Entry();
  entry->ca_pem = front_pki_.ca_pem();
  Front(entry);
  EXPECT_EQ(Get("/apis/example.com/v1/things").status, 503);
  entry = Entry();
  entry->ca_pem.clear();
  entry->insecure = true;
  Front(entry);
  EXPECT_EQ(Get("/apis/example.com/v1/things").body, "ok");
}

TEST_F(AggregationProxyTest, RedirectsStayThere) {
  Serve([](Requests, Writer writer) { writer->Reply(302, {{"Location", "https://192.0.2.1/"}}, "away"); });
  Front(Entry());
  const http::ClientResponse response = Get("/apis/example.com/v1/things");
  EXPECT_EQ(response.status, 502);
  EXPECT_FALSE(response.headers.Has("Location"));
  EXPECT_EQ(response.body, "the backend attempted to redirect this request, which is not permitted\n");
}

// The Service leads back to this server.
TEST_F(AggregationProxyTest, RequestsDoNotGoRound) {
  std::string via;
  Serve([&](Requests request, Writer writer) {
    via = request->headers.Get("Via");
    writer->Reply(200, {}, "");
  });
  Front(Entry());
  EXPECT_EQ(Get("/apis/example.com/v1/things", {{"Via", "1.1 someone"}}).status, 200);
  EXPECT_THAT(via, testing::StartsWith("1.1 someone, 1.1 keelson-"));
  const http::ClientResponse again = Get("/apis/example.com/v1/things", {{"Via", via}});
  EXPECT_EQ(again.status, 503);
  EXPECT_THAT(again.body, HasSubstr("the request has come back"));
}

TEST_F(AggregationProxyTest, SilenceEndsAtTheDeadline) {
  std::vector<Writer> kept;
  Serve([&](Requests, Writer writer) { kept.push_back(std::move(writer)); });
  Front(Entry(), std::chrono::milliseconds(200));
  const http::ClientResponse response = Get("/apis/example.com/v1/things");
  EXPECT_EQ(response.status, 504);
  EXPECT_THAT(response.body, HasSubstr("request did not complete within the allotted timeout"));
  EXPECT_THAT(AwaitDone(1), ElementsAre(504));
  backend_->Stop();
  kept.clear();
}

TEST_F(AggregationProxyTest, AResponseThatBreaksOffIsNoWholeOne) {
  Writer stream;
  Serve([&](Requests, Writer writer) {
    stream = writer;
    writer->Start(200, {});
    writer->Write(std::make_shared<const std::string>("half"));
  });
  Front(Entry());
  http::ClientRequest request;
  request.target = "/apis/example.com/v1/things";
  auto reader = client_->Open(request, kSoon).value();
  EXPECT_EQ(reader->Read({}, kSoon).value(), "half");
  stream.reset();
  EXPECT_FALSE(reader->Read({}, kSoon));
}

}  // namespace
}  // namespace keelson::apiserver
