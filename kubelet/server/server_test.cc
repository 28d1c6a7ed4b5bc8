#include "kubelet/server/server.h"
#include "kubelet/server/auth.h"
#include "kubelet/server/system_logs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "lib/api/codec/codec.h"

#include "lib/base/file.h"
#include "lib/client/testing/fake_api.h"
#include "lib/http/testing/fixture.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet::server {
namespace {

using http::kSoon;

class FakeBackend : public KubeletBackend {
 public:
  std::string PodsJson() override { return R"({"kind":"PodList"})"; }
  Result<LogSource> ContainerLog(const ContainerRef& c, bool previous) override {
    if (c.container != "main") {
      return Error(Code::kNotFound,
                   "container \"" + c.container + "\" not found in pod \"" + c.pod_name + "\"");
    }
    return LogSource{previous ? log + ".previous" : log, running};
  }
  Result<std::string> ExecUrl(const ContainerRef& c, const ExecRequest& r, std::stop_token) override {
    std::string command;
    for (const std::string& word : r.command) command += word + " ";
    asked = c.pod_namespace + "/" + c.pod_name + "/" + c.pod_uid + "/" + c.container + " " + command +
            (r.in ? "i" : "") + (r.out ? "o" : "") + (r.err ? "e" : "") + (r.tty ? "t" : "");
    return streaming + "/exec/T";
  }
  Result<std::string> AttachUrl(const ContainerRef&, const ExecRequest&, std::stop_token) override {
    return Error(Code::kNotFound, "container not running");
  }
  Result<std::string> PortForwardUrl(const ContainerRef& pod, const std::vector<int32_t>& ports,
                                     std::stop_token) override {
    asked = pod.pod_namespace + "/" + pod.pod_name + "/" + pod.pod_uid + " " + std::to_string(ports.size());
    return streaming + "/portforward/T";
  }
  Result<RunResult> Run(const ContainerRef&, const std::vector<std::string>& command, std::chrono::seconds,
                        std::stop_token) override {
    return RunResult{command[0] == "false" ? 1 : 0, std::to_string(command.size()) + " words\n"};
  }
  std::vector<component::NamedCheck> HealthChecks() override {
    return {{"ping", [] { return Result<>(); }}, {"syncloop", [this]() -> Result<> {
                                                    if (sick) {
                                                      return Error(Code::kUnavailable, "runtime is down");
                                                    }
                                                    return {};
                                                  }}};
  }
  Result<std::string> StatsSummaryJson(bool brief) override {
    return std::string(brief ? "{}" : "{\"node\":{}}");
  }
  std::string RunningPodsJson() override { return R"({"kind":"PodList","items":[]})"; }
  Result<std::string> Checkpoint(const ContainerRef& c, std::stop_token) override {
    if (c.container == "main") return "/checkpoints/" + c.pod_name + ".tar";
    return Error(Code::kInternal, "checkpointing failed");
  }
  Result<std::string> Metrics() override { return metrics::Print(); }
  Result<std::string> ProbeMetrics() override { return std::string(); }
  Result<std::string> ResourceMetrics() override { return std::string("node_cpu 1\n"); }
  Result<std::string> CadvisorMetrics() override { return Error(Code::kUnimplemented, "no cadvisor"); }
  std::string ConfigzJson() override { return "{\"kubeletconfig\":{}}"; }

  std::string log, streaming, asked;
  std::atomic<bool> running{false}, sick{false};
};

class KubeletServerTest : public ::testing::Test {
 protected:
  KubeletServerTest()
      : api_(std::make_shared<client::FakeApi>()),
        streaming_([](auto request, auto writer) {
          auto stream = writer->Upgrade({{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}});
          EXPECT_TRUE(stream) << request->path;
        }),
        server_(Options(), backend_, client::RestClient(api_)),
        http_(server_.handler(), http::TlsOptions(pki_)) {
    backend_.log = pki_.dir() + "/0.log";
    backend_.streaming = streaming_.Url();
    api_->SetInterceptor([this](const client::ApiRequest& request) { return Review(request); });
  }
  static KubeletServerOptions Options() {
    KubeletServerOptions options;
    options.node_name = "n1";
    options.log_directory = "/nowhere";
    options.flags = {{"max-pods", "110"}};
    return options;
  }

  std::optional<Result<client::ApiResponse>> Review(const client::ApiRequest& request) {
    if (down_) return Result<client::ApiResponse>(Error(Code::kUnavailable, "no API server"));
    if (request.target.find("tokenreviews") != std::string::npos) {
      ++token_reviews_;
      authenticationv1::TokenReview review;
      EXPECT_TRUE(api::DecodeProtobuf(request.body, review));
      bool good = review.spec().token() == "good";
      review.mutable_status()->set_authenticated(good);
      if (good) review.mutable_status()->mutable_user()->set_username("system:serviceaccount:a:b");
      return client::FakeApi::Answer(review, 201);
    }
    ++access_reviews_;
    authorizationv1::SubjectAccessReview review;
    EXPECT_TRUE(api::DecodeProtobuf(request.body, review));
    const auto& what = review.spec().resource_attributes();
    EXPECT_EQ(what.resource(), "nodes");
    EXPECT_EQ(what.name(), "n1");
    last_access_ = what.verb() + " " + what.subresource();
    bool admin = false;
    for (const std::string& group : review.spec().groups()) admin |= group == "admins";
    bool metrics_reader =
        review.spec().user() == "system:serviceaccount:a:b" && what.subresource() == "metrics";
    review.mutable_status()->set_allowed(admin || metrics_reader);
    return client::FakeApi::Answer(review, 201);
  }

  std::unique_ptr<http::Client> As(const std::string& name, const std::vector<std::string>& groups) {
    return As(name, groups, http_);
  }
  std::unique_ptr<http::Client> As(const std::string& name, const std::vector<std::string>& groups,
                                   const http::RunningServer& at) {
    http::ClientOptions options;
    options.base_url = at.Url("https");
    options.tls.ca_pem = pki_.ca_pem();
    if (!name.empty()) {
      auto certificate = pki_.Client(name, groups);
      options.tls.certificate_pem = certificate.certificate_pem;
      options.tls.key_pem = certificate.key_pem;
    }
    return http::NewClient(options);
  }
  static std::string Get(http::Client& client, const std::string& target, const std::string& token = "",
                         const std::string& method = "GET") {
    http::ClientRequest request{method, target, {}, ""};
    if (!token.empty()) request.headers.Add("Authorization", "Bearer " + token);
    auto response = client.Do(request, kSoon);
    return response ? std::to_string(response->status) + " " + response->body : response.error().message();
  }

  crypto::TestPki pki_;
  std::shared_ptr<client::FakeApi> api_;
  FakeBackend backend_;
  std::atomic<int> token_reviews_{0}, access_reviews_{0};
  std::atomic<bool> down_{false};
  std::string last_access_;
  http::RunningServer streaming_;
  KubeletServer server_;
  http::RunningServer http_;
};

TEST_F(KubeletServerTest, EndpointsForAnAdministrator) {
  auto admin = As("root", {"admins"});
  struct Case {
    std::string target, expected, access;
  } cases[] = {
      {"/healthz", "200 ok", "get healthz"},
      {"/healthz/syncloop", "200 ok", ""},
      {"/healthz/other", "404 404 page not found\n", ""},
      {"/healthz/ping/ping", "404 404 page not found\n", ""},
      {"/healthz?verbose", "200 [+]ping ok\n[+]syncloop ok\nhealthz check passed\n", ""},
      {"/pods", R"(200 {"kind":"PodList"})", "get pods"},
      {"/configz", R"(200 {"kubeletconfig":{}})", "get configz"},
      {"/stats/summary", R"(200 {"node":{}})", "get stats"},
      {"/metrics/resource", "200 node_cpu 1\n", "get metrics"},
      {"/metrics/cadvisor", "501 no cadvisor\n", ""},
      {"/metrics/probes", "200 ", ""},
      {"/stats/summary?only_cpu_and_memory=true", "200 {}", ""},
      {"/runningpods/", R"(200 {"kind":"PodList","items":[]})", ""},
      {"/debug/pprof/", "200 /debug/pprof/\n\ncmdline: The command line invocation of the current program\n",
       "get proxy"},
      {"/debug/pprof/heap", "404 Unknown profile\n", ""},
      {"/debug/flags/v", "406 unsupported http method", ""},
      {"/debug/other", "404 404 page not found\n", ""},
      {"/logs/", "404 404 page not found\n", "get log"},
      {"/nowhere", "404 404 page not found\n", ""},
      {"/exec/ns/pod/main?output=1", "400 Upgrade request required\n", ""},
      {"/exec/ns/pod/main", "400 you must specify at least 1 of stdin, stdout, stderr\n", ""},
      {"/containerLogs/ns/pod/other", "404 container \"other\" not found in pod \"pod\"\n", ""},
      {"/containerLogs/ns/pod/main%2f..%2fmain", "404 container \"main/../main\" not found in pod \"pod\"\n",
       ""},
      {"/containerLogs/ns/pod/main/..", "404 404 page not found\n", ""},
      {"/pods/%2e%2e/exec/ns/pod/main", "404 404 page not found\n", ""},
      {"/metrics%2f../pods", "404 404 page not found\n", ""},
      {"/containerLogs/ns/pod/main?tailLines=x", "400 {\"message\": \"Unable to decode query.\"}\n", ""},
      {"/containerLogs/ns/pod/main?tailLines=-1", "422 {\"message\": \"Invalid request.\"}\n", ""},
  };
  for (const Case& c : cases) {
    last_access_.clear();
    EXPECT_EQ(Get(*admin, c.target), c.expected) << c.target;
    if (!c.access.empty()) {
      EXPECT_EQ(last_access_, c.access);
    }
  }
  const std::string metrics = Get(*admin, "/metrics");
  for (const char* sample :
       {"# TYPE kubelet_http_requests_total counter\n",
        "kubelet_http_requests_total{long_running=\"false\",method=\"GET\",path=\"pods\","
        "server_type=\"readwrite\"} ",
        "kubelet_http_inflight_requests{long_running=\"false\",method=\"GET\",path=\"metrics\","
        "server_type=\"readwrite\"} 1\n",
        "kubelet_http_requests_duration_seconds_bucket{long_running=\"false\",method=\"GET\","
        "path=\"pods\",server_type=\"readwrite\",le=\"+Inf\"} "}) {
    EXPECT_NE(metrics.find(sample), std::string::npos) << sample << metrics;
  }
  EXPECT_EQ(Get(*admin, "/pods", "", "DELETE"), "405 Method Not Allowed\n");
  EXPECT_EQ(Get(*admin, "/run/ns/pod/main?cmd=a+b", "", "POST"), "200 2 words\n");
  EXPECT_EQ(Get(*admin, "/checkpoint/ns/pod/main"), "405 Method Not Allowed\n");
  last_access_.clear();
  EXPECT_EQ(Get(*admin, "/checkpoint/ns/pod/main", "", "POST"), R"(200 {"items":["/checkpoints/pod.tar"]})");
  EXPECT_EQ(last_access_, "create checkpoint");
  EXPECT_EQ(Get(*admin, "/checkpoint/ns/pod/other", "", "POST"), "500 checkpointing failed\n");
  EXPECT_EQ(Get(*admin, "/run/ns/pod/main?cmd=false", "", "POST"),
            "500 command 'false' exited with 1: 1 words\n");
  backend_.sick = true;
  EXPECT_EQ(Get(*admin, "/healthz"),
            "500 [+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n");
  EXPECT_EQ(Get(*admin, "/healthz/syncloop"), "500 internal server error: reason withheld\n");
  EXPECT_EQ(Get(*admin, "/healthz?exclude=syncloop"), "200 ok");
}

TEST_F(KubeletServerTest, PagesOfEveryComponent) {
  auto admin = As("root", {"admins"});
  EXPECT_NE(Get(*admin, "/flagz").find("\nkubelet flagz\nWarning: "), std::string::npos);
  EXPECT_NE(Get(*admin, "/flagz").find("\nmax-pods=110\n"), std::string::npos);
  EXPECT_EQ(last_access_, "get configz");
  EXPECT_NE(Get(*admin, "/statusz").find("\nPaths: /configz /debug /flagz /healthz /metrics\n"),
            std::string::npos);
  EXPECT_EQ(last_access_, "get statusz");
  EXPECT_EQ(Get(*admin, "/statusz/x"), "404 404 page not found\n");
  EXPECT_EQ(Get(*admin, "/healthz"), "200 ok");
  EXPECT_NE(
      Get(*admin, "/metrics/slis").find("kubernetes_healthcheck{name=\"syncloop\",type=\"healthz\"} 1\n"),
      std::string::npos);
  EXPECT_EQ(last_access_, "get metrics");
  backend_.sick = true;
  EXPECT_EQ(Get(*admin, "/healthz").substr(0, 3), "500");
  const std::string slis = Get(*admin, "/metrics/slis");
  for (const char* line :
       {"# TYPE kubernetes_healthcheck gauge\n",
        "kubernetes_healthcheck{name=\"syncloop\",type=\"healthz\"} 0\n",
        "# TYPE kubernetes_healthchecks_total counter\n",
        "kubernetes_healthchecks_total{name=\"syncloop\",status=\"error\",type=\"healthz\"} "}) {
    EXPECT_NE(slis.find(line), std::string::npos) << line << slis;
  }
  EXPECT_EQ(Get(*admin, "/metrics").find("kubernetes_healthcheck"), std::string::npos);
}

TEST_F(KubeletServerTest, WhatIsTurnedOffSaysSo) {
  struct Case {
    bool KubeletServerOptions::*off;
    const char *target, *expected;
  } cases[] = {
      {&KubeletServerOptions::profiling, "/debug/pprof/", "405 profiling endpoint is disabled.\n"},
      {&KubeletServerOptions::debug_flags, "/debug/flags/v", "405 flags endpoint is disabled.\n"},
      {&KubeletServerOptions::statusz, "/statusz", "404 404 page not found\n"},
      {&KubeletServerOptions::flagz, "/flagz", "404 404 page not found\n"},
      {&KubeletServerOptions::system_log_handler, "/logs/", "405 logs endpoint is disabled.\n"},
      {&KubeletServerOptions::debugging_handlers, "/debug/pprof/", "405 Debug endpoints are disabled.\n"},
      {&KubeletServerOptions::debugging_handlers, "/logs/", "405 Debug endpoints are disabled.\n"},
      {&KubeletServerOptions::debugging_handlers, "/runningpods/", "405 Debug endpoints are disabled.\n"},
      {&KubeletServerOptions::debugging_handlers, "/configz", "404 404 page not found\n"},
      {&KubeletServerOptions::debugging_handlers, "/statusz", "404 404 page not found\n"},
      {&KubeletServerOptions::debugging_handlers, "/debug/flags/v", "404 404 page not found\n"},
      {&KubeletServerOptions::debugging_handlers, "/pods", R"(200 {"kind":"PodList"})"},
  };
  for (const Case& c : cases) {
    KubeletServerOptions options = Options();
    options.*c.off = false;
    KubeletServer server(options, backend_, client::RestClient(api_));
    http::RunningServer open(server.handler(), http::TlsOptions(pki_));
    EXPECT_EQ(Get(*As("root", {"admins"}, open), c.target), c.expected) << c.target;
  }
}

TEST_F(KubeletServerTest, LogsOfTheNodeEndAtTheirDirectory) {
  const std::string dir = pki_.dir() + "/log";
  ASSERT_TRUE(MakeDirs(dir + "/pods"));
  ASSERT_TRUE(WriteFile(dir + "/sys<log", "a line\n"));
  ASSERT_TRUE(WriteFile(pki_.dir() + "/secret", "no\n"));
  ASSERT_EQ(::symlink("../secret", (dir + "/link").c_str()), 0);
  http::RunningServer logs([&](auto request, auto writer) { ServeSystemLogs(dir, *request, *writer); });
  http::ClientOptions options;
  options.base_url = logs.Url();
  auto client = *http::Client::Create(options);
  EXPECT_EQ(Get(*client, "/logs/sys%3Clog"), "200 a line\n");
  EXPECT_NE(Get(*client, "/logs/").find("<a href=\"sys%3Clog\">sys&lt;log</a>"), std::string::npos);
  EXPECT_NE(Get(*client, "/logs/").find(">pods/</a>"), std::string::npos);
  for (const char* path :
       {"/logs/link", "/logs/../secret", "/logs/%2e%2e/secret", "/logs/%2e%2e%2fsecret",
        "/logs/pods/../../secret", "/logs//etc/passwd", "/logs/absent", "/logs/sys%3Clog%00", "/logs/%00"}) {
    EXPECT_EQ(Get(*client, path), "404 404 page not found\n") << path;
  }
}

TEST_F(KubeletServerTest, TheReadOnlyPortOnlyShows) {
  http::RunningServer open(server_.read_only_handler());
  http::ClientOptions options;
  options.base_url = open.Url();
  auto client = *http::Client::Create(options);
  EXPECT_EQ(Get(*client, "/healthz"), "200 ok");
  EXPECT_EQ(Get(*client, "/pods"), R"(200 {"kind":"PodList"})");
  EXPECT_EQ(Get(*client, "/stats/summary"), R"(200 {"node":{}})");
  EXPECT_EQ(Get(*client, "/configz"), "404 404 page not found\n");
  EXPECT_EQ(Get(*client, "/exec/ns/pod/main?output=1&command=x"), "404 404 page not found\n");
  EXPECT_EQ(Get(*client, "/run/ns/pod/main?cmd=x", "", "POST"), "405 Method Not Allowed\n");
}

TEST_F(KubeletServerTest, WhoMayWhat) {
  EXPECT_EQ(Get(*As("", {}), "/pods"), "401 Unauthorized");
  EXPECT_EQ(Get(*As("", {}), "/pods", "bad"), "401 Unauthorized");
  EXPECT_EQ(Get(*As("someone", {"users"}), "/pods"),
            "403 Forbidden (user=someone, verb=get, resource=nodes, subresource(s)=[pods proxy])");
  auto nobody = As("", {});
  EXPECT_EQ(Get(*nobody, "/metrics/probes", "good"), "200 ");
  EXPECT_EQ(Get(*nobody, "/pods", "good").substr(0, 3), "403");
}

TEST_F(KubeletServerTest, AnswersOfTheApiServerAreKept) {
  auto client = As("", {});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Get(*client, "/metrics/probes", "good"), "200 ");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Get(*client, "/metrics/probes", "bad"), "401 Unauthorized");
  EXPECT_EQ(token_reviews_, 2);
  EXPECT_EQ(access_reviews_, 1);
  down_ = true;
  EXPECT_EQ(Get(*client, "/metrics/probes", "good"), "200 ");
  EXPECT_EQ(Get(*client, "/metrics/probes", "other"), "401 Unauthorized");
  EXPECT_EQ(Get(*As("root", {"admins"}), "/pods"),
            "500 Authorization error (user=root, verb=get, resource=nodes, subresource=pods)");
}

TEST_F(KubeletServerTest, Logs) {
  auto admin = As("root", {"admins"});
  ASSERT_TRUE(
      WriteFile(backend_.log, "2026-01-01T00:00:01Z stdout F one\n2026-01-01T00:00:02Z stdout F two\n"));
  ASSERT_TRUE(WriteFile(backend_.log + ".previous", "2025-01-01T00:00:01Z stdout F before\n"));
  EXPECT_EQ(Get(*admin, "/containerLogs/ns/pod/main"), "200 one\ntwo\n");
  EXPECT_EQ(Get(*admin, "/containerLogs/ns/pod/main?tailLines=1&timestamps=true"),
            "200 2026-01-01T00:00:02.000000000Z two\n");
  EXPECT_EQ(Get(*admin, "/containerLogs/ns/pod/main?previous=true"), "200 before\n");
  EXPECT_EQ(Get(*admin, "/containerLogs/ns/pod/main?follow=true"), "200 one\ntwo\n");  // it has ended
  backend_.running = true;
  auto reader = admin->Open({"GET", "/containerLogs/ns/pod/main?follow=true", {}, ""}, kSoon);
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ((*reader)->Read({}, kSoon).value_or("failed"), "one\ntwo\n");
  std::string more = ReadFile(backend_.log).value_or("") + "2026-01-01T00:00:03Z stderr F three\n";
  ASSERT_TRUE(WriteFile(backend_.log, more));
  std::string got;
  while (got.find("three\n") == std::string::npos) {
    auto piece = (*reader)->Read({}, kSoon);
    ASSERT_TRUE(piece && !piece->empty());
    got += *piece;
  }
  backend_.running = false;
  EXPECT_EQ((*reader)->Read({}, kSoon).value_or("failed"), "");
}

// The response that is followed may be the last that knows of the server it came by.
TEST_F(KubeletServerTest, EndsWhileALogIsFollowed) {
  ASSERT_TRUE(WriteFile(backend_.log, "2026-01-01T00:00:01Z stdout F one\n"));
  backend_.running = true;
  auto server = std::make_unique<KubeletServer>(Options(), backend_, client::RestClient(api_));
  auto known = std::make_shared<int>();
  std::weak_ptr<int> to_somebody = known;
  auto open = std::make_unique<http::RunningServer>(
      [known, handler = server->handler()](auto request, auto writer) { handler(request, writer); },
      http::TlsOptions(pki_));
  known.reset();
  auto admin = As("root", {"admins"}, *open);
  auto reader = admin->Open({"GET", "/containerLogs/ns/pod/main?follow=true", {}, ""}, kSoon);
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ((*reader)->Read({}, kSoon).value_or("failed"), "one\n");
  open.reset();
  server.reset();
  while (!to_somebody.expired()) std::this_thread::yield();
}

TEST_F(KubeletServerTest, StreamsAreAskedForAsTheRequestSays) {
  auto admin = As("root", {"admins"});
  auto upgrade = [&](const std::string& target) {
    auto upgraded = admin->Upgrade({"POST",
                                    target,
                                    {{"Connection", "Upgrade"},
                                     {"Upgrade", "SPDY/3.1"},
                                     {"X-Stream-Protocol-Version", "v4.channel.k8s.io"}},
                                    ""},
                                   kSoon);
    return upgraded ? std::string("up") : upgraded.error().message();
  };
  EXPECT_EQ(upgrade("/exec/ns/pod/main?command=sh&command=-c&input=1&output=1&error=1"), "up");
  EXPECT_EQ(backend_.asked, "ns/pod//main sh -c ioe");
  EXPECT_EQ(upgrade("/exec/ns/pod/uid-1/main?command=sh&stdin=true&stdout=true&stderr=true&tty=true"), "up");
  EXPECT_EQ(backend_.asked, "ns/pod/uid-1/main sh iot");
  EXPECT_EQ(upgrade("/attach/ns/pod/main?output=1"), "container not running\n");
  EXPECT_EQ(upgrade("/portForward/ns/pod"), "up");
  EXPECT_EQ(backend_.asked, "ns/pod/ 0");
  EXPECT_EQ(upgrade("/portForward/ns/pod/uid-1?port=80&port=443"), "up");
  EXPECT_EQ(backend_.asked, "ns/pod/uid-1 2");
  EXPECT_EQ(upgrade("/portForward/ns/pod?port=0"), "invalid port \"0\"\n");
}

// An expired or untrusted certificate is refused.
TEST_F(KubeletServerTest, UselessCertificatesMakeNobodyAnonymous) {
  FakeClock clock;
  KubeletServerOptions options = Options();
  options.anonymous = true;
  Auth auth(options, client::RestClient(api_), clock);
  auto who = [&](const http::ServerRequest& request) {
    auto user = auth.Authenticate(request);
    return user ? user->name : user.error().message();
  };
  http::ServerRequest request;
  EXPECT_EQ(who(request), "system:anonymous");
  request.peer.emplace();
  request.peer->common_name = "alice";
  request.peer->not_after = clock.Now() + std::chrono::seconds(10);
  EXPECT_EQ(who(request), "alice");
  clock.Advance(std::chrono::seconds(11));
  EXPECT_EQ(who(request), "Unauthorized");
  request.peer.reset();
  request.peer_refused = true;
  EXPECT_EQ(who(request), "Unauthorized");
  request.headers.Add("Authorization", "Bearer good");
  EXPECT_EQ(who(request), "system:serviceaccount:a:b");
}

}  // namespace
}  // namespace keelson::kubelet::server
