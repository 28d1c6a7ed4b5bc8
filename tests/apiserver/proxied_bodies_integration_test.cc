// Bodies of requests to a kubelet through the API server: of any length, as they come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/http/testing/fixture.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

using http::BodyStream;
using http::kSoon;

// A kubelet that sends every body back while it arrives.
class StreamKubelet {
 public:
  explicit StreamKubelet(const crypto::TestPki& pki) : server_(Serve, Options(pki)) {}
  int port() const { return server_.port(); }

 private:
  static http::ServerOptions Options(const crypto::TestPki& pki) {
    http::ServerOptions options = http::TlsOptions(pki);
    options.streams_body = [](const http::ServerRequest&) { return true; };
    return options;
  }
  static void Serve(const std::shared_ptr<const http::ServerRequest>& request,
                    const std::shared_ptr<http::ResponseWriter>& writer) {
    if (!request->body_stream) return writer->Reply(200, {}, request->body);
    writer->Start(200, {{"X-Length", std::string(request->headers.Get("Content-Length"))}});
    // Without an owner: the writer must not keep the stream that keeps it.
    std::weak_ptr<BodyStream> body = request->body_stream;
    auto order = std::make_shared<Mutex>();  // calls come from the handler and from the connection
    request->body_stream->OnReadable([body, writer, order] {
      auto stream = body.lock();
      if (!stream) return;
      MutexLock lock(*order);
      BodyStream::Batch batch = stream->Take();
      for (auto& piece : batch.pieces) writer->Write(std::move(piece));
      if (batch.finished) writer->Finish();
    });
  }

  http::RunningServer server_;
};

class ProxiedBodies : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped()) return;
    kubelet_ = std::make_unique<StreamKubelet>(cluster_->pki());
    node_ = "streams-" + ns_;
    ASSERT_EQ(Send("POST", "/api/v1/nodes", R"({"metadata":{"name":")" + node_ + "\"}}"), 201);
    const std::string status = R"({"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],)"
                               R"("daemonEndpoints":{"kubeletEndpoint":{"Port":)" +
                               std::to_string(kubelet_->port()) + "}}}}";
    ASSERT_EQ(Send("PATCH", "/api/v1/nodes/" + node_ + "/status", status), 200);
    client_ = cluster_->NewClient("admin");
  }
  void TearDown() override {
    if (kubelet_) Kubectl({"delete", "node", node_});
  }
  static int Send(const std::string& method, const std::string& target, const std::string& body) {
    return cluster_
        ->Do({method,
              target,
              {{"Content-Type", method == "PATCH" ? "application/merge-patch+json" : "application/json"}},
              body})
        .status;
  }
  static std::string Piece(http::ResponseReader& reader) {
    Result<std::string> piece = reader.Read({}, kSoon);
    return piece ? *piece : piece.error().message();
  }
  std::string Proxy() const { return "/api/v1/nodes/" + node_ + "/proxy/echo"; }

  std::unique_ptr<StreamKubelet> kubelet_;
  std::string node_;
  std::unique_ptr<http::Client> client_;
};

// Longer than what the server takes for its own resources.
TEST_F(ProxiedBodies, HaveAnyLength) {
  http::ClientRequest request{"POST", Proxy()};
  for (size_t i = 0; request.body.size() < (12u << 20); ++i) request.body += std::to_string(i) + ",";
  Result<http::ClientResponse> response = client_->Do(request, kSoon);
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->headers.Get("X-Length"), std::to_string(request.body.size()));
  EXPECT_TRUE(response->body == request.body);
  // The connection is still of use, and others keep their limit.
  EXPECT_EQ(client_->Do({"POST", Proxy(), {}, "short"}, kSoon)->body, "short");
  request.target = "/api/v1/namespaces/" + ns_ + "/configmaps";
  response = client_->Do(request, kSoon);
  EXPECT_TRUE(!response || response->status == 413);
}

TEST_F(ProxiedBodies, PassAsTheyCome) {
  http::ClientRequest request{"POST", Proxy()};
  auto body = request.body_stream = std::make_shared<BodyStream>();
  body->Write("one");
  Result<std::unique_ptr<http::ResponseReader>> reader = client_->Open(request, kSoon);
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ(Piece(**reader), "one");
  for (const char* piece : {" two", " three"}) {
    body->Write(piece);
    EXPECT_EQ(Piece(**reader), piece);
  }
  body->Finish();
  EXPECT_EQ(Piece(**reader), "");
}

TEST_F(ProxiedBodies, NeedPermissionBeforeTheyEnd) {
  cluster_->AddUser("stranger", {});
  std::unique_ptr<http::Client> stranger = cluster_->NewClient("stranger");
  http::ClientRequest request{"POST", Proxy()};
  request.body_stream = std::make_shared<BodyStream>();
  request.body_stream->Write("half");
  Result<std::unique_ptr<http::ResponseReader>> reader = stranger->Open(request, kSoon);
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ((*reader)->status(), 403);
}

TEST_F(ProxiedBodies, AKubeletThatIsAwayIs503) {
  kubelet_.reset();
  http::ClientRequest request{"POST", Proxy(), {}, "short"};
  const http::ClientResponse response = client_->Do(request, kSoon).value();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, testing::HasSubstr("error trying to reach service: "));
  EXPECT_THAT(response.body, testing::HasSubstr("\"reason\":\"ServiceUnavailable\""));
  Kubectl({"delete", "node", node_});
}

}  // namespace
}  // namespace keelson::apiserver
