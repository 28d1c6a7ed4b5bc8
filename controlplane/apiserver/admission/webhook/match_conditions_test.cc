// Match conditions of webhooks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/admission/webhook/testing/webhook_plugins.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
namespace json = boost::json;

// The conditions of a webhook, as a further member.
std::string Conditions(const std::vector<std::string>& expressions, const std::string& more = "") {
  std::string out = more + R"(,"matchConditions":[)";
  for (const std::string& expression : expressions) {
    if (out.back() != '[') out += ',';
    out += R"({"name":"c","expression":")" + expression + "\"}";
  }
  return out + "]";
}

TEST_F(WebhookPlugins, MatchConditionsDecideAboutCalls) {
  server_.On("/v", [](const json::value&) { return std::string(R"("allowed":false)"); });
  const std::string skip = "object.metadata.name != 'x'";
  const std::string group = "'dev' in request.userInfo.groups", broken = "object.none == 1";
  const std::string ns = "request.namespace == 'ns' && request.resource.resource == 'configmaps'";
  const std::string failed = "expression 'object.none == 1' resulted in error: no such key: none";
  struct {
    std::vector<std::string> expressions;
    std::string error;  // empty: not called
    std::string more;
  } cases[] = {
      {{"true"}, "denied the request"},
      {{"true", "false"}, ""},
      {{group, ns, "request.operation == 'CREATE' && oldObject == null"}, "denied the request"},
      {{skip}, ""},
      {{broken}, "configmaps \"x\" is forbidden: " + failed},
      // One that is false decides.
      {{broken, "false"}, ""},
      {{broken, broken + " || false"},
       "[" + failed + ", expression 'object.none == 1 || false' resulted in error: no such key: none]"},
      {{broken}, "", R"(,"failurePolicy":"Ignore")"},
      // What does not compile counts as failed.
      {{"x"}, "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'x'"},
      {{"authorizer.group('').resource('pods').namespace('ns').check('get').allowed()"}, "denied"},
      {{"authorizer.requestResource.check('delete').allowed()"}, ""},
      {{"authorizer.serviceAccount('ns', 'sa').path('/healthz').check('get').allowed()"}, ""},
  };
  Map();
  int number = 0;
  for (const auto& c : cases) {
    const std::string name = "v" + std::to_string(number++);
    Validating(name, {{name + ".example.com", "/v", Conditions(c.expressions, c.more)}});
    const std::string error = Admit();
    if (c.error.empty()) {
      EXPECT_EQ(error, "") << c.expressions.back();
    } else {
      EXPECT_THAT(error, HasSubstr(c.error)) << c.expressions.back();
    }
    Remove<ValidatingConfiguration>(name);
  }
}

TEST_F(WebhookPlugins, MatchConditionsHaveABudget) {
  // Each check of the authorizer costs 350,000: together these are above 2,500,000.
  const std::string check = "authorizer.path('/x').check('get').allowed() || true";
  Validating("v", {{"v.example.com", "/v", Conditions(std::vector<std::string>(7, check))}});
  Map();
  EXPECT_EQ(Admit(), "");
  Validating("w", {{"w.example.com", "/v", Conditions(std::vector<std::string>(8, check))}});
  EXPECT_THAT(Admit(), HasSubstr("validation failed due to running out of cost budget, no further validation "
                                 "rules will be run"));
}

TEST_F(WebhookPlugins, MatchConditionsSeeEarlierMutations) {
  server_.On("/first", [](const json::value&) {
    return HookServer::Patch(R"([{"op":"add","path":"/metadata/labels","value":{"a":"b"}}])");
  });
  Mutating("a", {{"a.example.com", "/first", ""}});
  Mutating("b", {{"b.example.com", "/second", Conditions({"object.metadata.labels['a'] == 'b'"})},
                 {"c.example.com", "/third", Conditions({"object.metadata.labels['a'] == 'c'"})}});
  Map();
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(server_.Seen("/second").size(), 1U);
  EXPECT_THAT(server_.Seen("/third"), IsEmpty());
}

}  // namespace
}  // namespace keelson::apiserver
