#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <future>
#include <semaphore>
#include <thread>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/client/transport.h"
#include "lib/crypto/testing/test_pki.h"
#include "lib/http/server/server.h"
#include "lib/metrics/metrics.h"

namespace keelson::client {
namespace {

constexpr std::chrono::seconds kSoon{10};

class HttpTransportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    http::ServerOptions options;
    options.tls = crypto::TlsServerOptions{
        pki_.server_cert_file(), pki_.server_key_file(), pki_.ca_file(), "", {"h2", "http/1.1"}};
    auto server = http::Server::Listen(options, [](auto request, auto writer) { Answer(*request, writer); });
    ASSERT_TRUE(server);
    server_ = std::move(*server);
    thread_ = std::jthread(
        [this](std::stop_token stop) { EXPECT_TRUE(server_->Run(stop, std::chrono::milliseconds(100))); });
    config_.server = "https://127.0.0.1:" + std::to_string(server_->port());
    config_.ca_pem = pki_.ca_pem();
    config_.user_agent = "test/1";
  }
  static void Answer(const http::ServerRequest& request,
                     const std::shared_ptr<http::ResponseWriter>& writer) {
    if (request.path == "/who") {
      std::string who = request.peer ? request.peer->common_name : "-";
      who += "|" + std::string(request.headers.Get("Authorization")) + "|" +
             std::string(request.headers.Get("User-Agent"));
      return writer->Reply(200, {{"Content-Type", "text/plain"}}, who);
    }
    if (request.path == "/gone") {
      auto status = api::ToStatus(Error(Code::kGone, "too old resource version"));
      bool json = request.query.GetBool("json");
      std::string body = json ? api::EncodeJson(status, {"", "v1", "Status"})
                              : api::EncodeProtobuf(status, {"", "v1", "Status"});
      return writer->Reply(410, {}, body);
    }
    if (request.path == "/watch") {
      writer->Start(200, {});
      writer->Write(std::make_shared<const std::string>("event"));
      return writer->Finish();
    }
    writer->Reply(503, {}, "etcd is away\n");
  }
  std::string Who(Transport& transport) {
    ApiRequest request;
    request.target = "/who";
    auto response = transport.Do(request, kSoon, {});
    return response ? response->body : response.error().message();
  }

  crypto::TestPki pki_;
  RestConfig config_;
  std::unique_ptr<http::Server> server_;
  std::jthread thread_;
};

TEST_F(HttpTransportTest, CredentialsAndAgent) {
  auto certificate = pki_.Client("alice", {"dev"});
  config_.certificate_pem = certificate.certificate_pem;
  config_.key_pem = certificate.key_pem;
  config_.token = "t1";
  auto transport = NewHttpTransport(config_);
  ASSERT_TRUE(transport) << transport.error().message();
  EXPECT_EQ(Who(**transport), "alice|Bearer t1|test/1");
  const std::string host = config_.server.substr(std::string_view("https://").size());
  EXPECT_NE(metrics::Print().find("rest_client_requests_total{code=\"200\",method=\"GET\",host=\"" + host +
                                  "\"} 1\n"),
            std::string::npos);
  for (const char* series :
       {"rest_client_request_duration_seconds_count", "rest_client_request_size_bytes_count",
        "rest_client_response_size_bytes_count"}) {
    EXPECT_NE(metrics::Print().find(std::string(series) + "{verb=\"GET\",host=\"" + host + "\"} 1\n"),
              std::string::npos)
        << series;
  }
}

TEST_F(HttpTransportTest, TokenFileWins) {
  config_.token = "t1";
  config_.token_file = pki_.dir() + "/token";
  ASSERT_TRUE(WriteFile(config_.token_file, "from-file\n"));
  auto transport = NewHttpTransport(config_);
  ASSERT_TRUE(transport);
  EXPECT_EQ(Who(**transport), "-|Bearer from-file|test/1");
}

TEST_F(HttpTransportTest, StreamsTellWhenThereIsSomethingToRead) {
  auto transport = NewHttpTransport(config_);
  ASSERT_TRUE(transport);
  ApiRequest request;
  request.target = "/watch";
  auto stream = (*transport)->Open(request, {});
  ASSERT_TRUE(stream) << stream.error().message();
  const auto readable = std::make_shared<std::counting_semaphore<>>(0);
  (*stream)->OnReadable([readable] { readable->release(); });
  std::string text;
  for (bool ended = false; !ended;) {
    ASSERT_TRUE(readable->try_acquire_for(kSoon)) << text;
    for (;;) {
      Result<std::string> piece = (*stream)->Read({}, std::chrono::milliseconds(0));
      if (!piece) {
        ASSERT_TRUE(piece.error().Is(Code::kTimeout)) << piece.error().message();
        break;
      }
      if (ended = piece->empty(); ended) break;
      text += *piece;
    }
  }
  EXPECT_EQ(text, "event");
}

TEST_F(HttpTransportTest, StreamsAndErrors) {
  auto transport = NewHttpTransport(config_);
  ASSERT_TRUE(transport);
  ApiRequest request;
  request.target = "/watch";
  auto stream = (*transport)->Open(request, {});
  ASSERT_TRUE(stream) << stream.error().message();
  EXPECT_EQ((*stream)->Read({}, kSoon).value_or("failed"), "event");
  EXPECT_EQ((*stream)->Read({}, kSoon).value_or("failed"), "");
  for (const char* target : {"/gone", "/gone?json=1"}) {
    request.target = target;
    auto gone = (*transport)->Open(request, {});
    ASSERT_FALSE(gone);
    EXPECT_TRUE(gone.error().Is(Code::kGone)) << gone.error().message();
    EXPECT_EQ(gone.error().message(), "too old resource version");
  }
  request.target = "/else";
  auto away = (*transport)->Open(request, {});
  ASSERT_FALSE(away);
  EXPECT_TRUE(away.error().Is(Code::kUnavailable));
  EXPECT_EQ(away.error().message(), "etcd is away");
}

TEST_F(HttpTransportTest, KubeconfigFromFilesAndData) {
  auto certificate = pki_.Client("bob", {"dev"});
  ASSERT_TRUE(WriteFile(pki_.dir() + "/bob.pem", certificate.certificate_pem));
  ASSERT_TRUE(WriteFile(pki_.dir() + "/bob.key", certificate.key_pem));
  std::string yaml =
      "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
      "clusters:\n- name: c\n  cluster: {server: \"" +
      config_.server +
      "\", certificate-authority: ca.pem}\n"
      "- name: d\n  cluster: {server: \"https://x\", certificate-authority-data: aGVsbG8=, "
      "insecure-skip-tls-verify: true}\n"
      "contexts:\n- name: main\n  context: {cluster: c, user: bob}\n- name: other\n  context: {cluster: d, "
      "user: token}\n"
      "- name: broken\n  context: {cluster: nowhere, user: bob}\n"
      "users:\n- name: bob\n  user: {client-certificate: bob.pem, client-key: bob.key}\n"
      "- name: token\n  user: {token: abc, tokenFile: token}\n";
  std::string path = pki_.dir() + "/kubeconfig";
  ASSERT_TRUE(WriteFile(path, yaml));
  auto config = LoadKubeconfig(path);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->certificate_file, pki_.dir() + "/bob.pem");
  auto transport = NewHttpTransport(*config);
  ASSERT_TRUE(transport) << transport.error().message();
  EXPECT_EQ(Who(**transport), "bob||");

  auto other = LoadKubeconfig(path, "other");
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ(other->ca_pem, "hello");
  EXPECT_TRUE(other->insecure);
  EXPECT_EQ(other->token, "abc");
  EXPECT_EQ(other->token_file, pki_.dir() + "/token");

  EXPECT_FALSE(LoadKubeconfig(path, "broken"));
  EXPECT_FALSE(LoadKubeconfig(path, "absent"));
  EXPECT_FALSE(LoadKubeconfig(pki_.dir() + "/none"));
  ASSERT_TRUE(WriteFile(path, "{ a: [ b"));
  EXPECT_FALSE(LoadKubeconfig(path));
}

}  // namespace
}  // namespace keelson::client
