// Webhooks and admission policies: defaults and limits of Kubernetes 1.36.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

constexpr char kV1[] = "admissionregistration.k8s.io/v1";
constexpr char kRule[] =
    R"({"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]})";

std::string Cluster(const std::string& rest) { return R"({"metadata":{"name":"x"},)" + rest + "}"; }
std::string Hooks(const std::string& rest, const std::string& name = "a.b.c",
                  const std::string& side_effects = "None", const std::string& versions = R"("v1")") {
  return Cluster(R"("webhooks":[{"name":")" + name + R"(","sideEffects":")" + side_effects +
                 R"(","admissionReviewVersions":[)" + versions +
                 R"(],"clientConfig":{"service":{"namespace":"n","name":"s"}})" + rest + "}]");
}
std::string Policy(const std::string& rest) {
  return Cluster(R"("spec":{"matchConstraints":{"resourceRules":[)" + std::string(kRule) + "]}," + rest +
                 "}");
}
std::string Conditions(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format(R"({}{{"name":"c{}","expression":"true"}})", i ? "," : "", i);
  }
  return R"("matchConditions":[)" + out + "]";
}

// Expects these fields after defaulting; each as `"field":value`.
void ExpectFilled(const char* kind, const std::string& json, const std::vector<std::string>& filled) {
  const std::string text = api::EncodeJson(*Parse(kV1, kind, json));
  for (const std::string& one : filled) EXPECT_NE(text.find(one), std::string::npos) << one << " in " << text;
}

TEST(AdmissionRules, Defaults) {
  const std::vector<std::string> webhook = {R"("failurePolicy":"Fail")",
                                            R"("matchPolicy":"Equivalent")",
                                            R"("timeoutSeconds":10)",
                                            R"("namespaceSelector":{})",
                                            R"("objectSelector":{})",
                                            R"("scope":"*")",
                                            R"("port":443)"};
  const std::string rules = R"(,"rules":[)" + std::string(kRule) + "]";
  ExpectFilled("ValidatingWebhookConfiguration", Hooks(rules), webhook);
  ExpectFilled("MutatingWebhookConfiguration", Hooks(rules), webhook);
  ExpectFilled("MutatingWebhookConfiguration", Hooks(""), {R"("reinvocationPolicy":"Never")"});
  const std::vector<std::string> policy = {R"("failurePolicy":"Fail")", R"("matchPolicy":"Equivalent")",
                                           R"("namespaceSelector":{})", R"("objectSelector":{})",
                                           R"("scope":"*")"};
  for (const char* kind : {"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}) {
    ExpectFilled(kind, Policy(R"("variables":[])"), policy);
  }
  for (const char* kind : {"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"}) {
    ExpectFilled(kind, Cluster(R"("spec":{"policyName":"p","matchResources":{}})"),
                 {R"("matchPolicy":"Equivalent")", R"("namespaceSelector":{})", R"("objectSelector":{})"});
  }
}

TEST(AdmissionRules, LimitsOfWebhooks) {
  const std::string too_many = "webhooks[0].matchConditions: Too many: 65: must have at most 64 items";
  ExpectErrors(
      kV1, "ValidatingWebhookConfiguration",
      {{Hooks("," + Conditions(64)), {}},
       {Hooks("," + Conditions(65)), {too_many}},
       {Hooks(R"(,"timeoutSeconds":1)"), {}},
       {Hooks(R"(,"timeoutSeconds":30)"), {}},
       {Hooks(R"(,"timeoutSeconds":0)"),
        {"webhooks[0].timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 "
         "seconds"}},
       {Hooks("", "a.b.c", "NoneOnDryRun"), {}},
       {Hooks("", "a.b.c", "Some"),
        {"webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", "
         "\"NoneOnDryRun\""}},
       {Hooks("", "a.b.c", "None", R"("v2","v1beta1")"), {}},
       {Hooks("", "a.b.c", "None", R"("v2")"),
        {"webhooks[0].admissionReviewVersions: Invalid value: [\"v2\"]: must include at least one of "
         "v1, v1beta1"}},
       {Hooks("", "b.c"),
        {"webhooks[0].name: Invalid value: \"b.c\": should be a domain with at least three segments "
         "separated by dots"}}});
}

TEST(AdmissionRules, LimitsOfPolicies) {
  const auto annotation = [](size_t bytes) {
    return Policy(R"("auditAnnotations":[{"key":"k","valueExpression":")" + std::string(bytes, 'a') + "\"}]");
  };
  ExpectErrors(
      kV1, "ValidatingAdmissionPolicy",
      {{Policy(R"("validations":[{"expression":"true"}],)" + Conditions(65)),
        {"spec.matchConditions: Too many: 65: must have at most 64 items"}},
       {annotation(5120), {}},
       {annotation(5121),
        {"spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length"}}});
  for (const char* reason : {"Forbidden", "Invalid", "RequestEntityTooLarge"}) {
    ExpectErrors(
        kV1, "ValidatingAdmissionPolicy",
        {{Policy(fmt::format(R"("validations":[{{"expression":"true","reason":"{}"}}])", reason)), {}}});
  }
  const auto actions = [](const char* list) {
    return Cluster(fmt::format(R"("spec":{{"policyName":"p","validationActions":[{}]}})", list));
  };
  ExpectErrors(
      kV1, "ValidatingAdmissionPolicyBinding",
      {{actions(R"("Warn","Audit")"), {}},
       {actions(""), {"spec.validationActions: Required value: at least one validation action is required"}},
       {actions(R"("Deny","Deny")"), {"spec.validationActions[1]: Duplicate value: \"Deny\""}}});
}

}  // namespace
}  // namespace keelson::k8s
