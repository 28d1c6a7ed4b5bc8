// Webhooks, admission policies, API services, devices, access rules.
#include "lib/k8s/testing/rule_cases.h"

namespace keelson::k8s {
namespace {

constexpr char kAdmission[] = "admissionregistration.k8s.io/v1";

std::string Hook(const std::string& rest) {
  return Cluster(
      R"("webhooks":[{"name":"a.example.com","sideEffects":"None","admissionReviewVersions":["v1"],)" + rest +
      "}]");
}
constexpr char kUrl[] = R"("clientConfig":{"url":"https://example.com/x"})";

TEST(ExtensionRules, Webhooks) {
  constexpr char kKind[] = "ValidatingWebhookConfiguration";
  ExpectErrors({
      {kAdmission, kKind, Hook(kUrl), {}},
      {kAdmission,
       kKind,
       Cluster(R"("webhooks":[{"name":"short","clientConfig":{}}])"),
       {"webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments "
        "separated by dots",
        "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"}},
      {kAdmission,
       kKind,
       Hook(R"("clientConfig":{"url":"http://u@h/?q#f"},"timeoutSeconds":31)"),
       {"webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; "
        "desired format: "
        "https://host[/path]",
        "webhooks[0].clientConfig.url: Invalid value: \"u\": user information is not permitted in the URL",
        "webhooks[0].clientConfig.url: Invalid value: \"f\": fragments are not permitted in the URL",
        "webhooks[0].clientConfig.url: Invalid value: \"q\": query parameters are not permitted in the URL"}},
      {kAdmission,
       kKind,
       Hook(R"("clientConfig":{"service":{"namespace":"n","name":"s","path":"a//b"}})"),
       {"webhooks[0].clientConfig.service.path: Invalid value: \"a//b\": must start with a '/'",
        "webhooks[0].clientConfig.service.path: Invalid value: \"a//b\": segment[0] may not be empty",
        "webhooks[0].clientConfig.service.path: Invalid value: \"a//b\": segment[1] may not be empty"}},
      {kAdmission,
       kKind,
       Hook(
           std::string(kUrl) +
           R"(,"rules":[{"operations":["*","CREATE"],"apiGroups":["a"],"apiVersions":["v1"],"resources":["pods/*","pods/status"]}])"),
       {"webhooks[0].rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not "
        "specify other "
        "operations",
        "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not "
        "specify "
        "pods/status"}},
      {kAdmission,
       kKind,
       Hook(std::string(kUrl) +
            R"(,"matchConditions":[{"name":"a","expression":"true"},{"name":"a","expression":" "}])"),
       {"webhooks[0].matchConditions[1].expression: Required value",
        "webhooks[0].matchConditions[1].name: Duplicate value: \"a\""}},
  });
}

TEST(ExtensionRules, AdmissionPolicies) {
  constexpr char kMatch[] =
      R"("matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]})";
  ExpectErrors({
      {kAdmission,
       "ValidatingAdmissionPolicy",
       Cluster(std::string(R"("spec":{)") + kMatch + R"(,"validations":[{"expression":"true"}]})"),
       {}},
      {kAdmission,
       "ValidatingAdmissionPolicy",
       Cluster(R"("spec":{})"),
       {"spec.matchConstraints: Required value",
        "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
        "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one "
        "item"}},
      {kAdmission,
       "ValidatingAdmissionPolicy",
       Cluster(std::string(R"("spec":{)") + kMatch +
               R"(,"paramKind":{"apiVersion":"a/b/c","kind":"K"},"variables":[{"name":"1","expression":""}],)"
               R"("validations":[{"expression":" ","message":"a\nb","reason":"Odd"}]})"),
       {"spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
        "spec.variables[0].name: Invalid value: \"1\": name is not a valid CEL identifier",
        "spec.variables[0].expression: Required value: expression is not specified",
        "spec.validations[0].expression: Required value: expression is not specified",
        "spec.validations[0].message: Invalid value: \"a\\nb\": message must not contain line breaks",
        "spec.validations[0].reason: Unsupported value: \"Odd\": supported values: \"Forbidden\", "
        "\"Invalid\", \"RequestEntityTooLarge\""}},
      // An expression of several lines needs no message.
      {kAdmission,
       "ValidatingAdmissionPolicy",
       Cluster(std::string(R"("spec":{)") + kMatch + R"(,"validations":[{"expression":"true ||\nfalse"}]})"),
       {}},
      {kAdmission,
       "ValidatingAdmissionPolicy",
       Cluster(R"("spec":{"matchConstraints":{"objectSelector":{"matchLabels":{"a b":"c"}},)"
               R"("resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],)"
               R"("resources":["pods"]}]},"validations":[{"expression":"true"}]})"),
       {std::string("spec.matchConstraints.objectSelector.matchLabels: Invalid value: \"a b\": ") +
        kQualifiedRule}},
      {kAdmission,
       "MutatingAdmissionPolicy",
       Cluster(
           R"("spec":{"matchConstraints":{"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],)"
           R"("apiVersions":["v1"],"resources":["pods"]}]},"reinvocationPolicy":"Never",)"
           R"("mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'remove', path: '/a'}]"}}]})"),
       {"spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported "
        "values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\""}},
      {kAdmission,
       "ValidatingAdmissionPolicyBinding",
       Cluster(R"("spec":{"policyName":"p","validationActions":["Deny","Warn"],"paramRef":{}})"),
       {"spec.paramRef: Required value: one of name or selector must be specified",
        "spec.paramRef.parameterNotFoundAction: Required value",
        "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn "
        "(repeating the "
        "same validation failure information in the API response and headers serves no purpose)"}},
      {kAdmission,
       "MutatingAdmissionPolicy",
       Cluster(std::string(R"("spec":{)") + kMatch +
               R"(,"reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch"}]})"),
       {"spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch"}},
  });
}

TEST(ExtensionRules, ApiServices) {
  const auto service = [](const std::string& spec) {
    return R"({"metadata":{"name":"v1.example.com"},"spec":{"group":"example.com","version":"v1",)"
           R"("groupPriorityMinimum":100,"versionPriority":10)" +
           spec + "}}";
  };
  ExpectErrors({
      {"apiregistration.k8s.io/v1", "APIService", service(""), {}},
      {"apiregistration.k8s.io/v1",
       "APIService",
       service(R"(,"caBundle":"eA==","insecureSkipTLSVerify":true)"),
       {"spec.caBundle: Invalid value: \"1 bytes\": local APIServices may not have a caBundle",
        "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have "
        "insecureSkipTLSVerify"}},
      {"apiregistration.k8s.io/v1",
       "APIService",
       Cluster(R"("spec":{"version":"v1","service":{"name":"s"}})"),
       {"metadata.name: Invalid value: \"x\": must be `spec.version+\".\"+spec.group`: \"v1.\"",
        "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
        "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
        "spec.service.namespace: Required value"}},
  });
}

TEST(ExtensionRules, Devices) {
  constexpr char kV1[] = "resource.k8s.io/v1";
  const auto claim = [](const std::string& devices) {
    return Namespaced(R"("spec":{"devices":{)" + devices + "}}");
  };
  ExpectErrors({
      {kV1, "ResourceClaim", claim(R"("requests":[{"name":"r","exactly":{"deviceClassName":"c"}}])"), {}},
      {kV1,
       "ResourceClaim",
       claim(
           R"("requests":[{"name":"r"},{"name":"r","exactly":{"deviceClassName":"","allocationMode":"All","count":2}}])"),
       {"spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
        "spec.devices.requests[1].exactly.deviceClassName: Required value",
        "spec.devices.requests[1].exactly.count: Invalid value: 2: must not be specified when allocationMode "
        "is 'All'",
        "spec.devices.requests[1]: Duplicate value: \"r\""}},
      {kV1,
       "ResourceClaim",
       claim(
           R"("requests":[{"name":"r","exactly":{"deviceClassName":"c"}}],"constraints":[{"requests":["s"],"matchAttribute":"x"}])"),
       {"spec.devices.constraints[0].requests[0]: Invalid value: \"s\": must be the name of a request in the "
        "claim or the "
        "name of a request and a subrequest separated by '/'",
        "spec.devices.constraints[0].matchAttribute: Invalid value: \"x\": must include a domain"}},
      {kV1,
       "DeviceClass",
       Cluster(R"("spec":{"selectors":[{}],"config":[{"opaque":{"driver":"d.io","parameters":[1]}}]})"),
       {"spec.selectors[0].cel: Required value",
        "spec.config[0].opaque.parameters: Invalid value: \"<value omitted>\": must be a valid JSON object"}},
      {kV1,
       "ResourceSlice",
       Cluster(
           R"("spec":{"driver":"d.io","pool":{"name":"p","generation":1,"resourceSliceCount":1},"nodeName":"n",)"
           R"("devices":[{"name":"a","attributes":{"v":{"version":"1.2"}}},{"name":"a","nodeName":"n"}]})"),
       {"spec.devices[0].attributes[v].version: Invalid value: \"1.2\": must be a string compatible with "
        "semver.org spec "
        "2.0.0",
        "spec.devices[1]: Invalid value: \"null\": `nodeName`, `nodeSelector` and `allNodes` can only be set "
        "if "
        "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
        "spec.devices[1]: Duplicate value: \"a\""}},
      {kV1,
       "ResourceSlice",
       Cluster(R"("spec":{"driver":"d.io","pool":{"name":"p","generation":0,"resourceSliceCount":0}})"),
       {"spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
        "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
        "`perDeviceNodeSelection` is "
        "required"}},
  });
  ExpectChangeErrors(ValidateStatusUpdate,
                     {{kV1,
                       "ResourceClaim",
                       claim(R"("requests":[])"),
                       Namespaced(R"("status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]})"),
                       {"status.reservedFor: Forbidden: may not be specified when `allocated` is not set"}}});
}

TEST(ExtensionRules, Bindings) {
  constexpr char kV1[] = "rbac.authorization.k8s.io/v1";
  ExpectErrors(
      {{kV1,
        "ClusterRoleBinding",
        Cluster(
            R"("roleRef":{"kind":"Role","name":""},"subjects":[{"kind":"ServiceAccount","name":"a"},{"kind":"Odd","name":"b"}])"),
        {"roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
         "roleRef.name: Required value", "subjects[0].namespace: Required value",
         "subjects[1].kind: Unsupported value: \"Odd\": supported values: \"ServiceAccount\", \"User\", "
         "\"Group\""}}});
  ExpectChangeErrors(
      ValidateUpdate,
      {{kV1,
        "RoleBinding",
        Namespaced(R"("roleRef":{"kind":"Role","name":"a"})"),
        Namespaced(R"("roleRef":{"kind":"Role","name":"b"})"),
        {"roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":"
         "\"b\"}: cannot change roleRef"}}});
}

}  // namespace
}  // namespace keelson::k8s
