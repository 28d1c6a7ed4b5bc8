// Admission policies and match conditions through kubectl, against the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;

class AdmissionPolicies : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (missing_.empty()) Kubectl({"label", "ns", ns_, "policies=" + ns_});
  }
  void TearDown() override {
    for (const auto& [kind, name] : made_) cluster_->Kubectl({"delete", kind, name, "--ignore-not-found"});
  }

  // A policy of this test with its binding for this test's namespace alone; `spec` in YAML flow style.
  void Make(const std::string& kind, const std::string& resources, const std::string& spec,
            const std::string& binding, const std::string& groups = R"(["", apps])") {
    const std::string text = fmt::format(R"(
apiVersion: admissionregistration.k8s.io/v1
kind: {0}
metadata: {{name: {1}}}
spec:
  matchConstraints:
    resourceRules: [{{operations: [CREATE, UPDATE], apiGroups: {2}, apiVersions: ["*"], resources: [{3}]}}]
{4}
---
apiVersion: admissionregistration.k8s.io/v1
kind: {0}Binding
metadata: {{name: {1}}}
spec:
  policyName: {1}
  matchResources: {{namespaceSelector: {{matchLabels: {{policies: {1}}}}}}}
{5}
)",
                                         kind, ns_, groups, resources, spec, binding);
    Output made = cluster_->Kubectl({"apply", "-f", "-"}, text);
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.err, "");  // enforced: no warning
    made_.emplace_back(kind, ns_);
    made_.emplace_back(kind + "Binding", ns_);
  }
  std::string Refused(const std::vector<std::string>& arguments, const std::string& input = "") {
    Output output = Run(arguments, input);
    EXPECT_NE(output.code, 0) << output.out;
    return output.err;
  }

  std::vector<std::pair<std::string, std::string>> made_;
};

TEST_F(AdmissionPolicies, DeploymentsHaveALimit) {
  Make("ValidatingAdmissionPolicy", "deployments", R"x(
  variables:
  - {name: replicas, expression: object.spec.replicas}
  - {name: odd, expression: variables.replicas % 2 == 1}
  validations:
  - {expression: "variables.replicas > 1", messageExpression: "'only ' + string(variables.replicas)"}
  - {expression: variables.odd, message: must be odd, reason: Forbidden})x",
       "  validationActions: [Deny]");
  Kubectl({"create", "deployment", "three", "--image=i", "--replicas=3"});
  EXPECT_THAT(
      Refused({"create", "deployment", "one", "--image=i", "--replicas=1"}),
      HasSubstr("ValidatingAdmissionPolicy '" + ns_ + "' with binding '" + ns_ + "' denied request: only 1"));
  EXPECT_THAT(Refused({"create", "deployment", "two", "--image=i", "--replicas=2"}),
              HasSubstr("deployments.apps \"two\" is forbidden: "));
  EXPECT_THAT(Refused({"patch", "deployment", "three", "-p", R"({"spec":{"replicas":4}})"}),
              HasSubstr("denied request: must be odd"));
  // Other namespaces are free.
  Output other = cluster_->Kubectl({"-n", "default", "create", "deployment", "free-" + ns_, "--image=i",
                                    "--replicas=1", "--dry-run=server"});
  EXPECT_EQ(other.code, 0) << other.err;
  // Without the binding, nothing is refused.
  cluster_->Kubectl({"delete", "validatingadmissionpolicybinding", ns_});
  Kubectl({"create", "deployment", "one", "--image=i", "--replicas=1"});
}

TEST_F(AdmissionPolicies, WarningsAndExpressionsThatDoNotCompile) {
  Make("ValidatingAdmissionPolicy", "configmaps",
       R"x(  validations: [{expression: "object.metadata.name.startsWith('a')", message: odd name}])x",
       "  validationActions: [Warn, Audit]");
  Output made = Run({"create", "configmap", "b"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.err, "Warning: Validation failed for ValidatingAdmissionPolicy '" + ns_ +
                          "' with binding '" + ns_ + "': odd name\n");
  const std::string broken = R"(
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: broken}
spec:
  matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
  validations: [{expression: "object.spec.replicas"}, {expression: "x"}])";
  const std::string error = Refused({"create", "-f", "-"}, broken);
  EXPECT_THAT(error,
              HasSubstr("spec.validations[0].expression: Invalid value: \"object.spec.replicas\": must "
                        "evaluate to bool but got dyn"));
  EXPECT_THAT(error,
              HasSubstr("spec.validations[1].expression: Invalid value: \"x\": compilation failed: ERROR: "
                        "<input>:1:1: undeclared reference to 'x' (in container '')"));
}

TEST_F(AdmissionPolicies, CustomResourcesAreParametersAndSubjects) {
  Kubectl({"apply", "-f", "-"}, R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.policies.example.com}
spec:
  group: policies.example.com
  scope: Namespaced
  names: {plural: limits, kind: Limit}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {most: {type: integer}}}})");
  Kubectl({"wait", "--for=condition=Established", "crd/limits.policies.example.com", "--timeout=30s"});
  Make("ValidatingAdmissionPolicy", "limits", R"(
  paramKind: {apiVersion: policies.example.com/v1, kind: Limit}
  validations: [{expression: "params == null || object.most <= params.most", message: above the limit}])",
       R"(  validationActions: [Deny]
  paramRef: {name: limit, parameterNotFoundAction: Allow})",
       "[policies.example.com]");
  const auto limit = [&](const std::string& name, int most) {
    return Run({"create", "-f", "-"}, fmt::format(R"(
apiVersion: policies.example.com/v1
kind: Limit
metadata: {{name: {}}}
most: {})",
                                                  name, most));
  };
  EXPECT_EQ(limit("limit", 5).code, 0);
  EXPECT_EQ(limit("small", 5).code, 0);
  EXPECT_THAT(limit("large", 6).err, HasSubstr("denied request: above the limit"));
}

TEST_F(AdmissionPolicies, MatchConditionsOfWebhooksAreChecked) {
  const auto configuration = [&](const std::string& expression) {
    return fmt::format(R"(
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {0}}}
webhooks:
- name: {0}.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {{url: "https://127.0.0.1:1/"}}
  rules: [{{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}}]
  namespaceSelector: {{matchLabels: {{policies: {0}}}}}
  matchConditions: [{{name: c, expression: "{1}"}}])",
                       ns_, expression);
  };
  EXPECT_THAT(Refused({"create", "-f", "-"}, configuration("... [] bad expression")),
              HasSubstr("compilation failed"));
  Kubectl({"create", "-f", "-"}, configuration("object.metadata.name != 'skip-me'"));
  made_.emplace_back("validatingwebhookconfiguration", ns_);
  Kubectl({"create", "configmap", "skip-me"});
  EXPECT_THAT(Refused({"create", "configmap", "ask-me"}), HasSubstr("failed calling webhook"));
}

}  // namespace
}  // namespace keelson::apiserver
