// Another API server behind the proxy: real servers on both sides, and a real client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "controlplane/apiserver/discovery.h"
#include "controlplane/apiserver/peers/peer_proxy.h"
#include "controlplane/apiserver/testing/recorder.h"
#include "lib/http/testing/fixture.h"

namespace keelson::apiserver {
namespace {

using http::kSoon;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Requests = std::shared_ptr<const http::ServerRequest>;
using Writer = std::shared_ptr<http::ResponseWriter>;

constexpr const char* kCore =
    R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},)"
    R"("versions":[{"version":"v1","resources":[{"resource":"pods"},{"resource":"novelties"}]}]}]})";
// A group and a version that this server does not have, a resource more of one that it has, and a custom resource.
constexpr const char* kGroups =
    R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[)"
    R"({"metadata":{"name":"future.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"rockets"}]}]},)"
    R"({"metadata":{"name":"batch"},"versions":[{"version":"v2","resources":[{"resource":"jobs"}]},)"
    R"({"version":"v1","resources":[{"resource":"jobs"},{"resource":"jobsets"}]}]},)"
    R"({"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[{"resource":"things"}]}]}]})";
constexpr const char* kAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

class PeersTest : public testing::Test {
 protected:
  PeersTest()
      : certificate_(front_pki_.Client("front-proxy", {})),
        clients_(pki_.ca_pem(), {certificate_.certificate_pem, certificate_.key_pem}) {}

  // Starts the peer, which says what it serves, and answers the rest by `handler`.
  void Serve(http::Handler handler) {
    http::ServerOptions options;
    options.tls = http::TlsOptions(pki_).tls;
    options.tls->client_ca_file = front_pki_.ca_file();
    peer_ = std::make_unique<http::RunningServer>(
        [this, handler = std::move(handler)](Requests request, Writer writer) {
          if (request->path != "/api" && request->path != "/apis") return handler(request, writer);
          ++asked_;
          EXPECT_EQ(request->headers.Get("X-Remote-User"), "system:apiserver");
          EXPECT_THAT(request->headers.All("X-Remote-Group"), ElementsAre("system:authenticated"));
          EXPECT_THAT(std::string(request->headers.Get("Accept")), HasSubstr("profile=nopeer"));
          writer->Reply(status_, {{"Content-Type", kAggregated}}, request->path == "/api" ? kCore : kGroups);
        },
        std::move(options));
    addresses_["apiserver-b"] = "127.0.0.1:" + std::to_string(peer_->port());
  }
  // Starts this server, which passes on what a peer serves, as the user jane.
  void Front() {
    front_ = std::make_unique<http::RunningServer>([this](Requests request, Writer writer) {
      auto context = std::make_shared<Context>();
      context->info = ParseRequestInfo(request->method, request->path, request->query);
      context->output = PlainOutput(*request);
      context->user = {"jane", "", {"dev"}, {}};
      context->audit_id = "ours";
      context->request = std::move(request);
      context->writer = std::move(writer);
      if (proxy_.Wants(*context)) return proxy_.Handle(context, [this] { ++done_; });
      context->writer->Reply(404, {}, "here");
    });
    client_ = http::NewClient({.base_url = front_->Url()});
  }
  http::ClientResponse Get(const std::string& target, http::Headers headers = {}) {
    http::ClientRequest request;
    request.target = target;
    request.headers = std::move(headers);
    return client_->Do(request, kSoon).value();
  }
  std::vector<std::string> ServersOf(const char* group, const char* version, const char* resource) const {
    return directory_.ServersOf(group, version, resource);
  }

  crypto::TestPki pki_, front_pki_;
  const crypto::TestCertificate certificate_;
  FakeClock clock_;
  std::map<std::string, std::string> holders_ = {{"apiserver-a", "apiserver-a_1"},
                                                 {"apiserver-b", "apiserver-b_1"}};
  std::map<std::string, std::string> addresses_;
  std::atomic<int> asked_{0}, done_{0}, status_{200};
  PeerClients clients_;
  PeerDirectory directory_{
      {"apiserver-a", [this] { return holders_; },
       [this](std::stop_token) -> Result<std::map<std::string, std::string>> { return addresses_; },
       [](const std::string& group, const std::string&) { return group == "example.com"; }},
      clients_,
      clock_};
  PeerProxy proxy_{directory_, clients_, {{"X-Custom-User"}, {"X-Custom-Extra-"}}};
  std::unique_ptr<http::RunningServer> peer_, front_;
  std::unique_ptr<http::Client> client_;
};

TEST_F(PeersTest, ArePlacesForWhatTheyServeThemselves) {
  Serve([](Requests, Writer writer) { writer->Reply(500, {}, ""); });
  directory_.Look({});
  EXPECT_THAT(ServersOf("future.k8s.io", "v1", "rockets"), ElementsAre("apiserver-b"));
  EXPECT_THAT(ServersOf("", "v1", "novelties"), ElementsAre("apiserver-b"));
  EXPECT_THAT(ServersOf("future.k8s.io", "v2", "rockets"), IsEmpty());
  EXPECT_THAT(ServersOf("example.com", "v1", "things"), IsEmpty()) << "every server knows these";
  // A peer is asked once a life.
  EXPECT_EQ(asked_, 2);
  clock_.Advance(std::chrono::hours(1));
  directory_.Look({});
  EXPECT_EQ(asked_, 2);
  holders_["apiserver-b"] = "apiserver-b_2";
  directory_.Look({});
  EXPECT_EQ(asked_, 4);
  EXPECT_THAT(ServersOf("future.k8s.io", "v1", "rockets"), ElementsAre("apiserver-b"));
  holders_.erase("apiserver-b");
  directory_.Look({});
  EXPECT_THAT(ServersOf("future.k8s.io", "v1", "rockets"), IsEmpty());
}

TEST_F(PeersTest, AreAskedAgainWhenTheyDoNotAnswer) {
  directory_.Look({});  // its identity is there before its address
  EXPECT_THAT(ServersOf("future.k8s.io", "v1", "rockets"), IsEmpty());
  status_ = 503;
  Serve([](Requests, Writer writer) { writer->Reply(500, {}, ""); });
  directory_.Look({});
  EXPECT_EQ(asked_, 0) << "not at once";
  clock_.Advance(milliseconds(500));
  directory_.Look({});
  EXPECT_EQ(asked_, 1);
  clock_.Advance(milliseconds(500));
  directory_.Look({});
  EXPECT_EQ(asked_, 1) << "less and less often";
  status_ = 200;
  clock_.Advance(milliseconds(500));
  directory_.Look({});
  EXPECT_THAT(ServersOf("future.k8s.io", "v1", "rockets"), ElementsAre("apiserver-b"));
}

TEST_F(PeersTest, AnswerForTheUserAndOnlyOnce) {
  http::Headers seen;
  std::string target, body, peer;
  Serve([&](Requests request, Writer writer) {
    seen = request->headers;
    target = request->method + " " + request->raw_path + "?" + request->raw_query;
    body = request->body;
    peer = request->peer ? request->peer->common_name : "";
    writer->Reply(201, {{"Content-Type", "application/json"}}, "{}");
  });
  directory_.Look({});
  Front();
  http::ClientRequest request;
  request.method = "POST";
  request.target = "/apis/future.k8s.io/v1/namespaces/a/rockets?dryRun=All";
  request.body = R"({"kind":"Rocket"})";
  request.headers = {
      {"Authorization", "Bearer secret"}, {"X-Remote-User", "admin"}, {"Impersonate-User", "admin"},
      {"X-Custom-User", "admin"},         {"Audit-Id", "theirs"},     {"Content-Type", "application/json"}};
  const http::ClientResponse response = client_->Do(request, kSoon).value();
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "{}");
  EXPECT_EQ(target, "POST /apis/future.k8s.io/v1/namespaces/a/rockets?dryRun=All");
  EXPECT_EQ(body, request.body);
  EXPECT_EQ(peer, "front-proxy");
  EXPECT_THAT(seen.All("X-Remote-User"), ElementsAre("jane"));
  EXPECT_THAT(seen.All("X-Remote-Group"), ElementsAre("dev"));
  EXPECT_THAT(seen.All("X-Kubernetes-Peer-Proxied"), ElementsAre("true"));
  EXPECT_THAT(seen.All("Audit-Id"), ElementsAre("ours"));
  for (const char* gone : {"Authorization", "Impersonate-User", "X-Custom-User"}) {
    EXPECT_THAT(seen.All(gone), IsEmpty()) << gone;
  }
  EXPECT_EQ(Get("/apis/future.k8s.io/v1/rockets", {{"x-kubernetes-peer-proxied", "true"}}).body, "here");
  EXPECT_EQ(Get("/apis/future.k8s.io/v1/unknown").body, "here");
  EXPECT_EQ(Get("/apis/future.k8s.io/v1").body, "here") << "a document of discovery";
}

TEST_F(PeersTest, ThatCannotBeReachedAre503) {
  Serve([](Requests, Writer writer) { writer->Reply(200, {}, "{}"); });
  directory_.Look({});
  Front();
  EXPECT_EQ(Get("/apis/batch/v2/namespaces/a/jobs").status, 200);
  peer_->Stop();
  http::ClientResponse response = Get("/apis/batch/v2/namespaces/a/jobs");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("\"reason\":\"ServiceUnavailable\""));
  addresses_.clear();  // its lease has ended
  response = Get("/apis/batch/v2/namespaces/a/jobs");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("Error getting ip and port info of the remote server while proxying"));
}

TEST_F(PeersTest, StandInDiscovery) {
  Serve([](Requests, Writer writer) { writer->Reply(500, {}, ""); });
  Discovery discovery("192.0.2.1:6443");
  discovery.SetPeers(directory_);
  const auto groups = [&](const std::string& accept) {
    RecordedRequest request("/apis", {{"Accept", accept}});
    EXPECT_TRUE(discovery.Handle(request.context));
    return request.reply->body;
  };
  EXPECT_THAT(groups(kAggregated), Not(HasSubstr("rockets")));
  directory_.Look({});
  const std::string all = groups(kAggregated);
  for (const char* name : {"\"future.k8s.io\"", "\"rockets\"", "\"jobsets\"", "\"version\":\"v2\""}) {
    EXPECT_THAT(all, HasSubstr(name));
  }
  EXPECT_LT(all.find("\"name\":\"apps\""), all.find("\"name\":\"future.k8s.io\"")) << "ours come first";
  for (const std::string& accept :
       {std::string(kAggregated) + ";profile=nopeer", std::string("application/json")}) {
    EXPECT_THAT(groups(accept), Not(HasSubstr("future.k8s.io"))) << accept;
  }
}

}  // namespace
}  // namespace keelson::apiserver
