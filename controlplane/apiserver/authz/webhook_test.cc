#include "controlplane/apiserver/authz/webhook.h"

#include <gtest/gtest.h>

#include <atomic>

#include <boost/json.hpp>

#include "controlplane/apiserver/authn/webhook_tokens.h"
#include "controlplane/apiserver/authz/config.h"
#include "controlplane/apiserver/authz/testing/attributes.h"
#include "controlplane/apiserver/testing/https_service.h"
#include "lib/base/file.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

class WebhookTest : public testing::Test {
 protected:
  WebhookTest()
      : service_([this](const http::ServerRequest& request) {
          ++asked_;
          if (down_) return HttpsService::Answer{500, "secret detail"};
          EXPECT_EQ(request.method, "POST");
          EXPECT_EQ(request.path, "/authorize");
          EXPECT_EQ(request.headers.Get("Authorization"), "Bearer webhook-token");
          last_ = json::parse(request.body).as_object();
          return HttpsService::Answer{201, answer_};
        }) {}

  std::unique_ptr<WebhookClient> Client() {
    std::string file = service_.dir() + "/webhook.conf";
    EXPECT_TRUE(WriteFile(file, service_.Kubeconfig("/authorize")));
    auto client = WebhookClient::FromKubeconfig(file, std::chrono::seconds(10));
    EXPECT_TRUE(client) << client.error().message();
    return std::move(*client);
  }

  FakeClock clock_;
  std::atomic<int> asked_{0};
  std::atomic<bool> down_{false};
  json::object last_;
  std::string answer_;
  HttpsService service_;
  const User jane_{"jane", "7", {"dev"}, {{"scope", {"a"}}}};
};

TEST_F(WebhookTest, AsksOnceAndRemembers) {
  WebhookAuthorizerOptions options;
  options.version = "v1";
  auto authorizer = NewWebhookAuthorizer(Client(), options, clock_);
  RequestInfo list = Resource("list", "apps", "deployments", "prod");
  list.label_selector = "app in (a,b),!old";
  answer_ = R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",)"
            R"("status":{"allowed":true,"reason":"is on call"}})";
  for (int i = 0; i < 3; ++i) {
    Decision decision = authorizer->Authorize({jane_, list});
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.reason, "is on call");
  }
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(json::serialize(last_["spec"]),
            R"({"user":"jane","uid":"7","groups":["dev"],"extra":{"scope":["a"]},"resourceAttributes":)"
            R"({"namespace":"prod","verb":"list","group":"apps","resource":"deployments","labelSelector":)"
            R"({"requirements":[{"key":"app","operator":"In","values":["a","b"]},)"
            R"({"key":"old","operator":"DoesNotExist"}]}}})");
  clock_.Advance(std::chrono::minutes(6));
  answer_ = R"({"status":{"allowed":false,"denied":true,"reason":"no"}})";
  Decision denied = authorizer->Authorize({jane_, list});
  EXPECT_TRUE(denied.denied);
  EXPECT_EQ(asked_, 2);
}

TEST_F(WebhookTest, WhoCannotBeAskedLetsNobodyIn) {
  down_ = true;
  RequestInfo get = Path("get", "/metrics");
  Decision passed = NewWebhookAuthorizer(Client(), {}, clock_)->Authorize({jane_, get});
  EXPECT_FALSE(passed.allowed);
  EXPECT_FALSE(passed.denied);
  EXPECT_EQ(passed.evaluation_error, "answered with status 500");
  WebhookAuthorizerOptions strict;
  strict.deny_on_failure = true;
  EXPECT_TRUE(NewWebhookAuthorizer(Client(), strict, clock_)->Authorize({jane_, get}).denied);
  down_ = false;
  for (const char* bad : {"", "[]", "{\"status\":{\"allowed\":true,\"denied\":true}}"}) {
    answer_ = bad;
    EXPECT_FALSE(NewWebhookAuthorizer(Client(), {}, clock_)->Authorize({jane_, get}).allowed) << bad;
  }
}

TEST_F(WebhookTest, GetsOnlyWhatMatchesItsConditions) {
  answer_ = R"({"status":{"allowed":true}})";
  WebhookAuthorizerOptions options;
  options.version = "v1";
  for (const char* condition :
       {"has(request.resourceAttributes)", "request.resourceAttributes.namespace == 'prod'",
        "!('system:masters' in request.groups)", "request.extra['scope'][0] == 'a' || request.uid == ''"}) {
    ASSERT_TRUE(options.conditions.Add(condition));
  }
  auto authorizer = NewWebhookAuthorizer(Client(), options, clock_);
  EXPECT_TRUE(authorizer->Authorize({jane_, Resource("get", "", "pods", "prod")}).allowed);
  EXPECT_EQ(asked_, 1);
  for (const RequestInfo& other : {Resource("get", "", "pods", "dev"), Path("get", "/metrics")}) {
    const Decision decision = authorizer->Authorize({jane_, other});
    EXPECT_FALSE(decision.allowed);
    EXPECT_FALSE(decision.denied);
    EXPECT_EQ(decision.evaluation_error, "");
  }
  EXPECT_EQ(asked_, 1);
}

TEST_F(WebhookTest, ConditionsThatFailAreJudgedByTheFailurePolicy) {
  WebhookAuthorizerOptions options;
  ASSERT_TRUE(options.conditions.Add("request.extra['none'][0] == 'x'"));
  const RequestInfo get = Resource("get", "", "pods", "prod");
  const Decision passed = NewWebhookAuthorizer(Client(), options, clock_)->Authorize({jane_, get});
  EXPECT_FALSE(passed.denied);
  EXPECT_EQ(passed.evaluation_error,
            "cel evaluation error: expression 'request.extra['none'][0] == 'x'' resulted in error: no such "
            "key: none");
  options.deny_on_failure = true;
  EXPECT_TRUE(NewWebhookAuthorizer(Client(), options, clock_)->Authorize({jane_, get}).denied);
  // One that is false decides, whatever the others are.
  ASSERT_TRUE(options.conditions.Add("request.user == 'joe'"));
  EXPECT_FALSE(NewWebhookAuthorizer(Client(), options, clock_)->Authorize({jane_, get}).denied);
  EXPECT_EQ(asked_, 0);
}

TEST_F(WebhookTest, OldVersionCallsGroupsGroup) {
  answer_ = R"({"status":{"allowed":true}})";
  RequestInfo get = Path("get", "/metrics");
  EXPECT_TRUE(NewWebhookAuthorizer(Client(), {}, clock_)->Authorize({jane_, get}).allowed);
  EXPECT_EQ(json::serialize(last_["apiVersion"]), "\"authorization.k8s.io/v1beta1\"");
  EXPECT_EQ(json::serialize(last_["spec"].at("group")), R"(["dev"])");
}

TEST_F(WebhookTest, Tokens) {
  WebhookTokenOptions options;
  options.api_audiences = {"api"};
  auto verifier = NewWebhookTokenVerifier(Client(), options, clock_);
  auto ask = [&](const std::vector<std::string>& audiences = {"api"}) -> std::string {
    auto answer = verifier->Authenticate("t0ken", audiences);
    return !answer ? answer.error().message() : !*answer ? "unknown" : (*answer)->user.name;
  };
  down_ = true;
  EXPECT_EQ(ask(), "token webhook cannot be asked");
  down_ = false;
  answer_ = R"({"status":{"authenticated":true,"user":{"username":"jane","groups":["dev"]}}})";
  EXPECT_EQ(ask(), "jane");
  EXPECT_EQ(json::serialize(last_["spec"]), R"({"token":"t0ken","audiences":["api"]})");
  int before = asked_;
  EXPECT_EQ(ask(), "jane");
  EXPECT_EQ(asked_, before);
  EXPECT_EQ(ask({"vault"}), "unknown");  // it did not say that the token is meant for that
  clock_.Advance(std::chrono::minutes(3));
  answer_ = R"({"status":{"authenticated":false,"error":"revoked"}})";
  EXPECT_EQ(ask(), "revoked");
}

TEST(AuthorizationConfig, Table) {
  const std::string webhook =
      "webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, authorizedTTL: 1m, "
      "connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/w}";
  struct {
    std::string entries, said;
  } rows[] = {
      {"{type: Node, name: node}, {type: RBAC, name: rbac}", ""},
      {"{type: Webhook, name: w, " + webhook + "}}, {type: RBAC, name: rbac}", ""},
      {"{type: Webhook, name: w, " + webhook +
           ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: 'request.user == "
           "\"a\"'}]}}",
       ""},
      {"{type: Webhook, name: w, " + webhook + ", matchConditions: [{expression: 'true'}]}}",
       "authorizers[0].webhook.matchConditionSubjectAccessReviewVersion: Required value: required if match "
       "conditions are specified"},
      {"{type: Webhook, name: w, " + webhook +
           ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: request.user}, "
           "{expression: ' '}, {expression: request.user}]}}",
       "authorizers[0].webhook.matchConditions[0].expression: Invalid value: \"request.user\": must evaluate "
       "to bool but got string, authorizers[0].webhook.matchConditions[1].expression: Required value, "
       "authorizers[0].webhook.matchConditions[2].expression: Duplicate value: \"request.user\""},
      {"{type: RBAC, name: a}, {type: RBAC, name: b}", "authorizers[1].type: Duplicate value: \"RBAC\""},
      {"{type: ABAC, name: a}", "authorizers[0].type: Unsupported value: \"ABAC\""},
      {"{type: RBAC}", "authorizers[0].name: Required value"},
      {"", "authorizers: Required value: at least one authorization mode must be defined"},
      {"{type: Webhook, name: w, webhook: {timeout: 40s}}",
       "authorizers[0].webhook.timeout: must be <= 30s, "
       "authorizers[0].webhook.subjectAccessReviewVersion: Required value, "
       "authorizers[0].webhook.failurePolicy: Required value, "
       "authorizers[0].webhook.connectionInfo.type: Required value, "
       "authorizers[0].webhook.connectionInfo.kubeConfigFile: Required value"},
      {"{type: RBAC, name: a, extra: 1}", "unknown field \"authorizers[0].extra\""},
  };
  for (const auto& row : rows) {
    auto parsed = ParseAuthorizationConfig(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [" +
        row.entries + "]\n");
    EXPECT_EQ(parsed ? "" : parsed.error().message(), row.said) << row.entries;
  }
  EXPECT_TRUE(AuthorizersOfModes({"Node", "RBAC"}, {}));
  EXPECT_FALSE(AuthorizersOfModes({"Webhook"}, {}));
  EXPECT_FALSE(AuthorizersOfModes({"RBAC", "RBAC"}, {}));
  EXPECT_FALSE(AuthorizersOfModes({"ABAC"}, {}));
  EXPECT_FALSE(AuthorizersOfModes({"RBAC"}, {}, "policy.jsonl"));
  auto abac = AuthorizersOfModes({"Node", "ABAC"}, {}, "policy.jsonl");
  ASSERT_TRUE(abac);
  EXPECT_EQ(abac->at(1).policy_file, "policy.jsonl");
}

}  // namespace
}  // namespace keelson::apiserver
