#include "controlplane/apiserver/admission/matching/rules.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::apiserver {
namespace {

using admissionregistrationv1::MutatingWebhook;

MutatingWebhook WithRules(const std::string& rules) {
  MutatingWebhook webhook;
  EXPECT_TRUE(api::DecodeJson(R"({"rules":)" + rules + "}", webhook)) << rules;
  return webhook;
}

const User kUser{"alice", "", {}, {}};

AdmissionRequest Request(std::string_view group, std::string_view version, std::string_view resource,
                         std::string_view ns = "ns",
                         registry::Operation operation = registry::Operation::kCreate) {
  const api::ResourceInfo* row = api::FindResource(group, version, resource);
  EXPECT_TRUE(row) << resource;
  return {operation, *row, ns, "x", nullptr, nullptr, kUser};
}

std::string Rule(const std::string& groups, const std::string& versions, const std::string& resources,
                 const std::string& more = "", const std::string& operations = "*") {
  return R"([{"operations":[")" + operations + R"("],"apiGroups":[")" + groups + R"("],"apiVersions":[")" +
         versions + R"("],"resources":[")" + resources + R"("])" + more + "}]";
}

TEST(AdmissionRules, GroupsVersionsResourcesAndSubresources) {
  struct {
    std::string rules;
    AdmissionRequest request;
    bool matches;
  } cases[] = {
      {Rule("", "v1", "pods"), Request("", "v1", "pods"), true},
      {Rule("*", "*", "pods"), Request("", "v1", "pods"), true},
      {Rule("apps", "v1", "pods"), Request("", "v1", "pods"), false},
      {Rule("", "v2", "pods"), Request("", "v1", "pods"), false},
      {Rule("", "v1", "pods"), Request("", "v1", "pods/status"), false},
      {Rule("", "v1", "pods/*"), Request("", "v1", "pods/status"), true},
      {Rule("", "v1", "pods/*"), Request("", "v1", "pods"), true},
      {Rule("", "v1", "*"), Request("", "v1", "pods"), true},
      {Rule("", "v1", "*"), Request("", "v1", "pods/status"), false},
      {Rule("", "v1", "*/status"), Request("", "v1", "pods/status"), true},
      {Rule("", "v1", "*/status"), Request("", "v1", "pods"), false},
      {Rule("", "v1", "*/*"), Request("", "v1", "pods"), true},
      {Rule("", "v1", "*/*"), Request("", "v1", "pods/exec"), true},
      {Rule("", "v1", "pods/exec"), Request("", "v1", "pods/exec"), true},
      {Rule("apps", "v1", "deployments/scale"), Request("apps", "v1", "deployments/scale"), true},
      {"[]", Request("", "v1", "pods"), false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(MatchRules(WithRules(c.rules).rules(), true, c.request) != nullptr, c.matches)
        << c.rules << " " << c.request.info.resource;
  }
}

TEST(AdmissionRules, Operations) {
  using registry::Operation;
  const std::pair<Operation, std::string> all[] = {{Operation::kCreate, "CREATE"},
                                                   {Operation::kUpdate, "UPDATE"},
                                                   {Operation::kDelete, "DELETE"},
                                                   {Operation::kConnect, "CONNECT"}};
  for (const auto& [operation, name] : all) {
    for (const auto& [other, wanted] : all) {
      const MutatingWebhook webhook = WithRules(Rule("", "v1", "pods", "", wanted));
      EXPECT_EQ(MatchRules(webhook.rules(), true, Request("", "v1", "pods", "ns", operation)) != nullptr,
                operation == other);
    }
  }
}

TEST(AdmissionRules, Scope) {
  const std::string cluster = R"(,"scope":"Cluster")", namespaced = R"(,"scope":"Namespaced")",
                    any = R"(,"scope":"*")";
  struct {
    std::string scope;
    AdmissionRequest request;
    bool matches;
  } cases[] = {
      {namespaced, Request("", "v1", "pods"), true},
      {cluster, Request("", "v1", "pods"), false},
      {any, Request("", "v1", "pods"), true},
      {namespaced, Request("", "v1", "nodes", ""), false},
      {cluster, Request("", "v1", "nodes", ""), true},
      // A namespace is cluster-scoped.
      {namespaced, Request("", "v1", "namespaces", ""), false},
      {cluster, Request("", "v1", "namespaces", ""), true},
      {cluster, Request("", "v1", "namespaces", "ns"), true},
  };
  for (const auto& c : cases) {
    const MutatingWebhook webhook = WithRules(Rule("*", "*", "*", c.scope));
    EXPECT_EQ(MatchRules(webhook.rules(), true, c.request) != nullptr, c.matches)
        << c.scope << " " << c.request.info.resource;
  }
}

TEST(AdmissionRules, EquivalentResources) {
  const AdmissionRequest v1 = Request("autoscaling", "v1", "horizontalpodautoscalers");
  const AdmissionRequest event = Request("events.k8s.io", "v1", "events");
  const AdmissionRequest status = Request("autoscaling", "v1", "horizontalpodautoscalers/status");
  struct {
    std::string rules;
    const AdmissionRequest& request;
    bool equivalent;
    const char* version;  // of the row that matches, with its group; null: none
  } cases[] = {
      {Rule("autoscaling", "v2", "horizontalpodautoscalers"), v1, true, "autoscaling/v2"},
      {Rule("autoscaling", "v2", "horizontalpodautoscalers"), v1, false, nullptr},
      {Rule("autoscaling", "*", "horizontalpodautoscalers"), v1, true, "autoscaling/v1"},
      {Rule("", "v1", "events"), event, true, "v1"},
      {Rule("", "v1", "events"), event, false, nullptr},
      {Rule("autoscaling", "v2", "horizontalpodautoscalers/status"), status, true, "autoscaling/v2"},
      {Rule("autoscaling", "v2", "horizontalpodautoscalers"), status, true, nullptr},
      {Rule("apps", "v1", "deployments"), v1, true, nullptr},
  };
  for (const auto& c : cases) {
    const api::ResourceInfo* row = MatchRules(WithRules(c.rules).rules(), c.equivalent, c.request);
    ASSERT_EQ(row != nullptr, c.version != nullptr) << c.rules;
    if (!row) continue;
    EXPECT_EQ(row->ApiVersion(), c.version);
    EXPECT_EQ(row->IsSubresource(), c.request.info.IsSubresource());
  }
}

TEST(AdmissionRules, ConfigurationsAreExempt) {
  for (const api::ResourceInfo& row : api::Resources()) {
    const AdmissionRequest request{registry::Operation::kUpdate, row, "", "x", nullptr, nullptr, kUser};
    EXPECT_EQ(IsAdmissionConfiguration(request), row.group == "admissionregistration.k8s.io") << row.resource;
  }
}

}  // namespace
}  // namespace keelson::apiserver
