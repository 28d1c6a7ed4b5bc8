#include "controlplane/apiserver/authz/abac.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "controlplane/apiserver/authz/testing/attributes.h"

namespace keelson::apiserver {
namespace {

// The lines of an example, and of Kubernetes 1.0 after them.
constexpr char kFile[] = R"(
# people
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","namespace":"projectCaribou","resource":"pods","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"deployers","namespace":"prod","resource":"deployments","apiGroup":"apps"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","nonResourcePath":"/version*","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"carol","group":"ops","namespace":"*","resource":"nodes"}}
{"user":"old","readonly":true}
{"group":"narrow","resource":"events","namespace":"prod"}
)";

User Of(const std::string& name, std::vector<std::string> groups = {}) {
  if (name != "system:anonymous") groups.emplace_back(kGroupAuthenticated);
  return {name, "", std::move(groups), {}};
}

TEST(Abac, Table) {
  auto authorizer = NewAbacAuthorizer("policy.jsonl", kFile);
  ASSERT_TRUE(authorizer) << authorizer.error().message();
  struct {
    User user;
    RequestInfo request;
    bool allowed;
  } rows[] = {
      {Of("alice"), Resource("delete", "apps", "deployments", "prod", "d"), true},
      {Of("alice"), Path("post", "/anything"), true},
      {Of("bob"), Resource("list", "", "pods", "projectCaribou"), true},
      {Of("bob"), Resource("delete", "", "pods", "projectCaribou", "p"), false},
      {Of("bob"), Resource("list", "", "pods", "another"), false},
      {Of("bob"), Resource("list", "", "secrets", "projectCaribou"), false},
      {Of("dave", {"deployers"}), Resource("update", "apps", "deployments", "prod", "d"), true},
      {Of("dave", {"deployers"}), Resource("update", "extensions", "deployments", "prod", "d"), false},
      {Of("dave"), Resource("update", "apps", "deployments", "prod", "d"), false},
      {Of("anybody"), Path("get", "/version"), true},
      {Of("anybody"), Path("get", "/version/x"), true},
      {Of("anybody"), Path("post", "/version"), false},
      {Of("anybody"), Path("get", "/metrics"), false},
      {Of("system:anonymous", {"system:unauthenticated"}), Path("get", "/version"), false},
      {Of("carol", {"ops"}), Resource("update", "", "nodes", "", "n"), true},
      {Of("carol"), Resource("update", "", "nodes", "", "n"), false},
      {Of("erin", {"ops"}), Resource("update", "", "nodes", "", "n"), false},
      {Of("old"), Resource("list", "batch", "jobs", "any"), true},
      {Of("old"), Path("get", "/logs"), true},
      {Of("old"), Resource("create", "batch", "jobs", "any"), false},
      {Of("x", {"narrow"}), Resource("create", "events.k8s.io", "events", "prod"), true},
      {Of("x", {"narrow"}), Resource("create", "", "events", "dev"), false},
      {Of("x", {"narrow"}), Path("get", "/logs"), false},
  };
  for (const auto& row : rows) {
    const Decision decision = (*authorizer)->Authorize({row.user, row.request});
    EXPECT_EQ(decision.allowed, row.allowed)
        << row.user.name << " " << row.request.verb << " " << row.request.resource << row.request.path;
    EXPECT_EQ(decision.reason, row.allowed ? "" : "No policy matched.");
    EXPECT_FALSE(decision.denied);
  }
}

TEST(Abac, RulesOfAUser) {
  auto authorizer = NewAbacAuthorizer("policy.jsonl", kFile);
  ASSERT_TRUE(authorizer);
  UserRules bob = (*authorizer)->RulesFor(Of("bob"), "projectCaribou");
  ASSERT_EQ(bob.rules.size(), 1u);
  EXPECT_EQ(bob.rules[0].verbs, (std::vector<std::string>{"get", "list", "watch"}));
  EXPECT_EQ(bob.rules[0].resources, std::vector<std::string>{"pods"});
  EXPECT_TRUE((*authorizer)->RulesFor(Of("bob"), "another").rules.empty());
  EXPECT_EQ((*authorizer)->RulesFor(Of("alice"), "any").rules.size(), 2u);
}

TEST(Abac, BadFilesAreRefusedByLine) {
  const std::string good = R"({"user":"a"})";
  struct {
    const char *line, *why;
  } rows[] = {
      {"not json", "syntax error"},
      {R"(["user"])", "not an object"},
      {R"({"user":"a","verb":"get"})", "unknown field \"verb\""},
      {R"({"user":"a","readonly":"yes"})", "readonly: not a boolean"},
      {R"({"user":1})", "user: not a string"},
      {R"({"apiVersion":"v2","kind":"Policy","spec":{}})",
       "no kind \"Policy\" is registered for version \"v2\""},
      {R"({"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy"})", "spec: not an object"},
  };
  for (const auto& row : rows) {
    auto refused = NewAbacAuthorizer("p", good + "\n" + row.line + "\n");
    ASSERT_FALSE(refused) << row.line;
    EXPECT_EQ(refused.error().message(),
              fmt::format("error reading policy file p, line 2: {}: {}", row.line, row.why));
  }
  EXPECT_TRUE(NewAbacAuthorizer("p", ""));
}

}  // namespace
}  // namespace keelson::apiserver
