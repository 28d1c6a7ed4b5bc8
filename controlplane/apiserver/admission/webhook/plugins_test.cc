// Calls of webhooks: which requests they see, how, and what their answers and failures do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "controlplane/apiserver/admission/webhook/testing/webhook_plugins.h"
#include "lib/http/testing/fixture.h"

namespace keelson::apiserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
namespace json = boost::json;
using registry::Operation;

TEST_F(WebhookPlugins, DenialsCarryTheWebhooksStatus) {
  Validating("v", {{"v.example.com", "/deny", ""}});
  struct {
    const char* status;
    const char* message;
    int code;
    const char* reason;
  } cases[] = {
      {R"({"message":"not today","code":403,"reason":"Forbidden"})",
       R"(admission webhook "v.example.com" denied the request: not today)", 403, "Forbidden"},
      {R"({"reason":"TooWide"})", R"(admission webhook "v.example.com" denied the request: TooWide)", 400,
       "TooWide"},
      {"{}", R"(admission webhook "v.example.com" denied the request without explanation)", 400, ""},
      {R"({"code":200,"status":"Success","message":"odd"})",
       R"(admission webhook "v.example.com" denied the request: odd)", 400, ""},
  };
  for (const auto& c : cases) {
    server_.On("/deny", [&](const json::value&) {
      return std::string(
                 R"("allowed":false,"warnings":["careful"],"auditAnnotations":{"why":"policy"},"status":)") +
             c.status;
    });
    Map();
    EXPECT_EQ(Admit(), c.message);
    ASSERT_TRUE(notes_.denial) << c.status;
    EXPECT_EQ(notes_.denial->message(), c.message);
    EXPECT_EQ(notes_.denial->code(), c.code);
    EXPECT_EQ(notes_.denial->reason(), c.reason);
    EXPECT_EQ(notes_.denial->status(), "Failure");
    EXPECT_THAT(notes_.told, ElementsAre("careful"));
    EXPECT_EQ(notes_.annotations["v.example.com/why"], "policy");
  }
}

TEST_F(WebhookPlugins, SelectorsChooseRequests) {
  Validating("v", {{"ns.example.com", "/ns", R"(,"namespaceSelector":{"matchLabels":{"env":"prod"}})"},
                   {"other.example.com", "/other", R"(,"namespaceSelector":{"matchLabels":{"env":"test"}})"},
                   {"object.example.com", "/object", R"(,"objectSelector":{"matchLabels":{"app":"web"}})"}});
  Map();
  EXPECT_EQ(Admit(), "");
  Map(R"({"app":"web"})");
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(Admit(Operation::kDelete), "");
  EXPECT_EQ(server_.Seen("/ns").size(), 3u);
  EXPECT_EQ(server_.Seen("/other").size(), 0u);
  ASSERT_EQ(server_.Seen("/object").size(), 2u);
  EXPECT_EQ(server_.Seen("/object")[0].at("operation").as_string(), "CREATE");
  EXPECT_TRUE(server_.Seen("/object")[1].at("object").is_null());
  EXPECT_EQ(server_.Seen("/object")[1].at("oldObject").at("kind").as_string(), "ConfigMap");
}

TEST_F(WebhookPlugins, FailedCallsFollowFailurePolicy) {
  const std::string url = server_.service().url();
  server_.OnRaw("/html", {200, "<html>"});
  server_.OnRaw("/500", {500, "boom"});
  server_.OnRaw("/404", {404, ""});
  server_.OnRaw("/302", {302, ""});
  server_.OnRaw("/huge", {200, std::string(9u << 20, 'x')});
  server_.OnRaw("/uid", {200, R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",
                                  "response":{"uid":"other","allowed":true}})"});
  crypto::TestPki stranger;
  const std::string ca = EncodeBase64(server_.service().ca_pem());
  auto client = [](const std::string& target, const std::string& bundle) {
    return R"(,"clientConfig":{)" + target + R"(,"caBundle":")" + bundle + "\"}";
  };
  const std::string service = R"("service":{"namespace":"default","name":"hook","path":"/ok"})";
  struct {
    std::string path, more, error;  // what follows `failed calling webhook "x": `; its beginning
  } cases[] = {
      {"/html", "",
       "failed to call webhook: couldn't get version/kind; json parse error: invalid character '<'"},
      {"/500", "", R"(failed to call webhook: an error on the server ("boom") has prevented)"},
      {"/404", "", "failed to call webhook: the server could not find the requested resource"},
      {"/302", "", "failed to call webhook: the server responded with the status code 302"},
      {"/huge", "",
       "failed to call webhook: Post \"" + url + "/huge?timeout=10s\": the response is longer than"},
      {"/uid", "", "received invalid webhook response: expected response.uid="},
      {"/ok", R"(,"timeoutSeconds":3)" + client(R"("url":"https://127.0.0.1:1/ok")", ca),
       "failed to call webhook: Post \"https://127.0.0.1:1/ok?timeout=3s\": dial tcp 127.0.0.1:1: connect: "
       "connection refused"},
      {"/ok", client("\"url\":\"" + url + "/ok\"", EncodeBase64(stranger.ca_pem())),
       "failed to call webhook: Post \"" + url +
           "/ok?timeout=10s\": tls: failed to verify certificate: x509: certificate signed by unknown "
           "authority"},
      {"/ok", client("\"url\":\"" + url + "/ok\"", EncodeBase64("no certificate")),
       "could not get REST client: unable to load root certificates: "},
      {"/ok", client(service, ca),
       "failed to call webhook: Post \"https://hook.default.svc:443/ok?timeout=10s\": service \"hook\" not "
       "found"},
      {"/ok", R"(,"admissionReviewVersions":["v9"])",
       "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, "
       "v1beta1)"},
  };
  int count = 0;
  for (const auto& c : cases) {
    const std::string name = "c" + std::to_string(++count);
    const std::string hook = name + ".example.com";
    // The second configuration is for objects with another label.
    Validating(name,
               {{hook, c.path, c.more + R"(,"objectSelector":{"matchLabels":{"case":")" + name + "\"}}"}});
    Validating(name + "i",
               {{hook, c.path,
                 c.more + R"(,"failurePolicy":"Ignore","objectSelector":{"matchLabels":{"case":")" + name +
                     "i\"}}"}});
    Map(R"({"case":")" + name + "\"}");
    EXPECT_THAT(Admit(),
                StartsWith("Internal error occurred: failed calling webhook \"" + hook + "\": " + c.error));
    EXPECT_EQ(code_, 500);
    EXPECT_FALSE(notes_.denial);
    Map(R"({"case":")" + name + "i\"}");
    EXPECT_EQ(Admit(), "");
    EXPECT_EQ(notes_.annotations["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"], hook);
  }
}

TEST_F(WebhookPlugins, SlowWebhooksEndWithTheRequest) {
  std::promise<void> release;
  std::shared_future<void> released(release.get_future());
  server_.On("/slow", [released](const json::value&) {
    released.wait();
    return std::string();
  });
  Validating("v", {{"slow.example.com", "/slow", ""}});
  Map();
  const SteadyTime deadline = SteadyTime::clock::now() + std::chrono::milliseconds(50);
  EXPECT_THAT(Admit(Operation::kCreate, false, deadline),
              HasSubstr("?timeout=1s\": context deadline exceeded"));
  EXPECT_EQ(code_, 500);
  release.set_value();
}

TEST_F(WebhookPlugins, AnswersWithoutAnEndTimeOut) {
  crypto::TestPki pki;
  std::shared_ptr<http::ResponseWriter> kept;
  http::RunningServer server(
      [&kept](auto, const auto& writer) {
        writer->Start(200, {{"Content-Type", "application/json"}});
        writer->Write(std::make_shared<const std::string>(R"({"kind":"AdmissionReview",)"));
        kept = writer;
      },
      http::TlsOptions(pki));
  Validating("v", {{"endless.example.com", "/endless",
                    R"(,"clientConfig":{"url":")" + server.Url("https") + R"(/endless","caBundle":")" +
                        EncodeBase64(pki.ca_pem()) + "\"}"}});
  Map();
  const SteadyTime deadline = SteadyTime::clock::now() + std::chrono::milliseconds(300);
  EXPECT_THAT(Admit(Operation::kCreate, false, deadline),
              HasSubstr("/endless?timeout=1s\": context deadline exceeded"));
  EXPECT_EQ(code_, 500);
  server.Stop();
}

TEST_F(WebhookPlugins, ValidatingWebhooksRunSideBySide) {
  std::atomic<int> waiting{0};
  std::promise<void> all;
  std::shared_future<void> together(all.get_future());
  auto meet = [&, together](const json::value&) {
    if (++waiting == 3) all.set_value();
    together.wait_for(std::chrono::seconds(10));
    return std::string();
  };
  for (const char* path : {"/a", "/b", "/c"}) server_.On(path, meet);
  Validating("v", {{"a.example.com", "/a", ""}, {"b.example.com", "/b", ""}, {"c.example.com", "/c", ""}});
  Map();
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(waiting, 3);
}

TEST_F(WebhookPlugins, DryRunsNeedWebhooksWithoutSideEffects) {
  Validating("v",
             {{"some.example.com", "/some", R"(,"sideEffects":"Some","failurePolicy":"Ignore")", "secrets"},
              {"none.example.com", "/none", R"(,"sideEffects":"NoneOnDryRun")"}});
  Map();
  EXPECT_EQ(Admit(Operation::kCreate, true), "");
  EXPECT_TRUE(server_.Seen("/none")[0].at("dryRun").as_bool());
  Object<corev1::Secret>(R"({"metadata":{"name":"x","namespace":"ns"}})");
  EXPECT_EQ(Admit(Operation::kCreate, true),
            R"(admission webhook "some.example.com" does not support dry run)");
  EXPECT_EQ(code_, 400);
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(server_.Seen("/some").size(), 1u);
}

TEST_F(WebhookPlugins, ServicesAreReachedAtTheirEndpoints) {
  const std::string url = server_.service().url();
  const std::string port = url.substr(url.rfind(':') + 1);
  store_->Put<corev1::Service>(R"({"metadata":{"name":"hook","namespace":"default"},"spec":{
      "clusterIP":"10.96.0.9","type":"ClusterIP","ports":[{"name":"https","port":8443}]}})");
  store_->Put<discoveryv1::EndpointSlice>(R"({"metadata":{"name":"hook-a","namespace":"default",
      "labels":{"kubernetes.io/service-name":"hook"}},"addressType":"IPv4",
      "ports":[{"name":"https","port":)" + port +
                                          R"(}],"endpoints":[{"addresses":["127.0.0.1"]}]})");
  const std::string ca = EncodeBase64(server_.service().ca_pem());
  Validating("v",
             {{"v.example.com", "",
               R"(,"clientConfig":{"service":{"namespace":"default","name":"hook","path":"/svc","port":8443},
                    "caBundle":")" +
                   ca + "\"}"}});
  Map();
  EXPECT_EQ(Admit(), "");
  ASSERT_EQ(server_.Seen("/svc").size(), 1u);
  EXPECT_EQ(server_.LastQuery(), "timeout=10s");
  // The certificate is not for this name.
  store_->Put<corev1::Service>(R"({"metadata":{"name":"hook","namespace":"kube-system"},"spec":{
      "clusterIP":"10.96.0.10","type":"ClusterIP","ports":[{"name":"https","port":443}]}})");
  store_->Put<discoveryv1::EndpointSlice>(R"({"metadata":{"name":"hook-b","namespace":"kube-system",
      "labels":{"kubernetes.io/service-name":"hook"}},"addressType":"IPv4",
      "ports":[{"name":"https","port":)" + port +
                                          R"(}],"endpoints":[{"addresses":["127.0.0.1"]}]})");
  Validating("w", {{"w.example.com", "",
                    R"(,"clientConfig":{"service":{"namespace":"kube-system","name":"hook"},"caBundle":")" +
                        ca + "\"}"}});
  EXPECT_THAT(Admit(),
              HasSubstr("Post \"https://hook.kube-system.svc:443/?timeout=10s\": tls: failed to verify "
                        "certificate: x509: certificate is not valid for this name"));
}

TEST_F(WebhookPlugins, ConfigurationsAreNobodysBusiness) {
  Validating("v", {{"v.example.com", "/v", "", "*/*"}});
  Mutating("m", {{"m.example.com", "/m", "", "*/*"}});
  Object<ValidatingConfiguration>(R"({"metadata":{"name":"x"}})");
  for (Operation operation : {Operation::kCreate, Operation::kUpdate, Operation::kDelete}) {
    EXPECT_EQ(Admit(operation), "");
  }
  EXPECT_THAT(server_.Seen("/v"), IsEmpty());
  EXPECT_THAT(server_.Seen("/m"), IsEmpty());
}

}  // namespace
}  // namespace keelson::apiserver
