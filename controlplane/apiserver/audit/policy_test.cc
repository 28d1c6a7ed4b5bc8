#include "controlplane/apiserver/audit/policy.h"

#include <gtest/gtest.h>

namespace keelson::apiserver::audit {
namespace {

std::string Text(const std::string& rest) { return "apiVersion: audit.k8s.io/v1\nkind: Policy\n" + rest; }

RequestInfo Resource(const std::string& verb, const std::string& group, const std::string& resource,
                     const std::string& ns = "", const std::string& name = "") {
  RequestInfo info;
  info.is_resource = true;
  info.verb = verb;
  info.group = group;
  info.version = "v1";
  info.ns = ns;
  info.name = name;
  size_t slash = resource.find('/');
  info.resource = resource.substr(0, slash);
  if (slash != std::string::npos) info.subresource = resource.substr(slash + 1);
  return info;
}

RequestInfo Path(const std::string& path) {
  RequestInfo info;
  info.verb = "get";
  info.path = path;
  return info;
}

TEST(AuditPolicy, TheFirstRuleThatFitsDecides) {
  auto policy = Policy::Parse(Text(R"(
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: ["system:kube-proxy"]
  verbs: [watch]
  resources: [{group: "", resources: [endpoints, services]}]
- level: None
  userGroups: ["system:nodes"]
  nonResourceURLs: ["/healthz*", "/version"]
- level: Metadata
  resources: [{group: "", resources: [secrets, configmaps, serviceaccounts/token]}]
- level: Request
  resources: [{group: apps}]
  omitManagedFields: false
- level: RequestResponse
  resources: [{group: "", resources: ["pods/*", "*/scale"]}]
  omitStages: [ResponseStarted]
- level: Request
  namespaces: [kube-system, ""]
  resources: [{group: "", resources: [pods, nodes], resourceNames: [one]}]
- level: Metadata
  nonResourceURLs: ["*"]
)"));
  ASSERT_TRUE(policy) << policy.error().message();
  const User proxy{"system:kube-proxy", "", {}, {}}, node{"system:node:a", "", {"system:nodes"}, {}},
      jane{"jane", "", {"dev"}, {}};
  struct Case {
    const User* user;
    RequestInfo request;
    Level level;
  };
  const Case cases[] = {
      {&proxy, Resource("watch", "", "services"), Level::kNone},
      {&proxy, Resource("list", "", "secrets"), Level::kMetadata},
      {&node, Path("/healthz/etcd"), Level::kNone},
      {&jane, Path("/healthz/etcd"), Level::kMetadata},
      {nullptr, Path("/version"), Level::kMetadata},
      {&jane, Resource("create", "", "serviceaccounts/token", "a", "b"), Level::kMetadata},
      {&jane, Resource("create", "", "serviceaccounts", "a"), Level::kNone},
      {&jane, Resource("create", "apps", "deployments", "a"), Level::kRequest},
      {&jane, Resource("create", "", "pods/exec", "a", "b"), Level::kRequestResponse},
      {&jane, Resource("get", "", "pods", "a", "b"), Level::kRequestResponse},
      {&jane, Resource("get", "", "replicationcontrollers/scale", "a", "b"), Level::kRequestResponse},
      {&jane, Resource("get", "", "nodes", "", "one"), Level::kRequest},
      {&jane, Resource("get", "", "nodes", "", "two"), Level::kNone},
      {&jane, Resource("get", "batch", "jobs", "a"), Level::kNone},
  };
  for (const Case& one : cases) {
    Verdict verdict = policy->Evaluate(one.user, one.request);
    EXPECT_EQ(verdict.level, one.level)
        << one.request.verb << " " << one.request.path << one.request.resource;
  }
  Verdict exec = policy->Evaluate(&jane, Resource("create", "", "pods/exec", "a", "b"));
  EXPECT_TRUE(exec.Omits(Stage::kRequestReceived));
  EXPECT_TRUE(exec.Omits(Stage::kResponseStarted));
  EXPECT_FALSE(exec.Omits(Stage::kResponseComplete));
  EXPECT_TRUE(exec.omit_managed_fields);
  EXPECT_FALSE(policy->Evaluate(&jane, Resource("get", "apps", "deployments")).omit_managed_fields);
}

TEST(AuditPolicy, SaysWhatIsWrong) {
  struct Case {
    std::string text, error;
  };
  const Case cases[] = {
      {"apiVersion: v1\nkind: Pod", "unknown group version field v1 Pod in policy"},
      {Text("rules: []"), "loaded illegal policy with 0 rules"},
      {Text("rules: [{users: [a]}]"), "rules[0].level: Required value"},
      {Text("rules: [{level: All}]"),
       "rules[0].level: Unsupported value: \"All\": supported values: \"Metadata\", \"None\", \"Request\", "
       "\"RequestResponse\""},
      {Text("rules: [{level: None, user: [a]}]"), "strict decoding error: unknown field \"rules[0].user\""},
      {Text("rules: [{level: None, nonResourceURLs: [healthz, '/a*b'], namespaces: [a]}]"),
       "[rules[0].nonResourceURLs: Invalid value: [\"healthz\",\"/a*b\"]: rules cannot apply to both regular "
       "resources and non-resource URLs, rules[0].nonResourceURLs[0]: Invalid value: \"healthz\": "
       "non-resource "
       "URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: \"/a*b\": "
       "non-resource URL wildcards '*' must be the final character of the rule]"},
      {Text("rules: [{level: None, resources: [{group: apps/v1, resourceNames: [x]}]}]"),
       "[rules[0].resources[0].group: Invalid value: \"apps/v1\": must not contain a version, "
       "rules[0].resources[0].resourceNames: Invalid value: [\"x\"]: using resourceNames requires at least "
       "one "
       "resource]"},
      {Text("omitManagedFields: 1\nrules: [{level: None, users: a, resources: [{group: 1}]}]"),
       "[omitManagedFields: must be true or false, rules[0].users: must be a list, "
       "rules[0].resources[0].group: must be a string]"},
      {Text("omitStages: [Done]\nrules: [{level: None}]"),
       "omitStages[0]: Invalid value: \"Done\": allowed stages are "
       "RequestReceived,ResponseStarted,ResponseComplete,Panic"},
  };
  for (const Case& one : cases) {
    auto policy = Policy::Parse(one.text);
    ASSERT_FALSE(policy) << one.text;
    EXPECT_EQ(policy.error().message(), one.error);
  }
}

}  // namespace
}  // namespace keelson::apiserver::audit
