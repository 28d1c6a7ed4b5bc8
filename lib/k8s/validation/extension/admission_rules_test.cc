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
    return Policy(R"("auditAnnotations":[{"key":"k","valueExpression":"')" + std::string(bytes - 2, 'a') +
                  "'\"}]");
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

struct Expression {
  std::string spec;   // of a policy, behind its match constraints
  std::string field;  // empty: it compiles
  std::string shown, problem;
};

void ExpectCompiled(const char* kind, const std::vector<Expression>& cases) {
  std::vector<KindCase> rules;
  for (const Expression& c : cases) {
    std::vector<std::string> errors;
    if (!c.field.empty()) {
      errors.push_back(fmt::format("{}: Invalid value: {}: {}", c.field, Quote(c.shown), c.problem));
    }
    rules.push_back({Policy(c.spec), errors});
  }
  ExpectErrors(kV1, kind, rules);
}

std::string Undeclared(const std::string& text, const std::string& name, size_t column = 0) {
  return fmt::format(
      "compilation failed: ERROR: <input>:1:{}: undeclared reference to '{}' (in container '')\n | {}\n | "
      "{}^",
      column + 1, name, text, std::string(column, '.'));
}

TEST(AdmissionRules, ExpressionsOfValidatingPoliciesCompile) {
  const auto validation = [](const std::string& more) { return R"("validations":[{)" + more + "}]"; };
  const std::string ok = R"("expression":"true")";
  const std::string params = R"("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},)";
  const std::string expression = "spec.validations[0].expression";
  ExpectCompiled(
      "ValidatingAdmissionPolicy",
      {{validation(R"("expression":"object.spec.replicas <= 5 && request.namespace != 'x'")"), "", "", ""},
       {validation(R"x("expression":"authorizer.requestResource.check('get').allowed()")x"), "", "", ""},
       {validation(R"("expression":"namespaceObject.metadata.labels['a'] == request.userInfo.username")"), "",
        "", ""},
       {validation(R"("expression":"x == 1")"), expression, "x == 1", Undeclared("x == 1", "x")},
       {validation(R"("expression":"1 + 1")"), expression, "1 + 1", "must evaluate to bool but got int"},
       {validation(R"("expression":"object.x")"), expression, "object.x",
        "must evaluate to bool but got dyn"},
       {validation(R"("expression":"request.uid == ''")"), expression, "request.uid == ''",
        "compilation failed: ERROR: <input>:1:8: undefined field 'uid'\n | request.uid == ''\n | .......^"},
       {validation(R"("expression":"params.x == 1")"), expression, "params.x == 1",
        Undeclared("params.x == 1", "params")},
       {params + validation(R"("expression":"params.x == 1")"), "", "", ""},
       {validation(ok + R"x(,"messageExpression":"string(object.x)")x"), "", "", ""},
       {validation(ok + R"(,"messageExpression":"1")"), "spec.validations[0].messageExpression", "1",
        "must evaluate to string but got int"},
       {validation(ok + R"x(,"messageExpression":"string(authorizer)")x"),
        "spec.validations[0].messageExpression", "string(authorizer)",
        Undeclared("string(authorizer)", "authorizer", 7)},
       {R"("auditAnnotations":[{"key":"k","valueExpression":"null"}])", "", "", ""},
       {R"("auditAnnotations":[{"key":"k","valueExpression":" timestamp('x') "}])",
        "spec.auditAnnotations[0].valueExpression", " timestamp('x') ",
        "compilation failed: ERROR: <input>:1:11: invalid timestamp argument\n | timestamp('x')\n | "
        "..........^"},
       {R"("auditAnnotations":[{"key":"k","valueExpression":"1"}])",
        "spec.auditAnnotations[0].valueExpression", "1",
        "must evaluate to one of [string null_type] but got int"},
       {R"("matchConditions":[{"name":"c","expression":" x "}],)" + validation(ok),
        "spec.matchConditions[0].expression", "x", Undeclared("x", "x")}});
}

TEST(AdmissionRules, VariablesAreTypedInOrder) {
  const auto policy = [](const std::string& variables, const std::string& expression) {
    return R"("variables":[)" + variables + R"(],"validations":[{"expression":")" + expression + R"("}])";
  };
  const std::string count = R"x({"name":"count","expression":"size(object.items)"})x";
  const std::string most = R"({"name":"most","expression":"variables.count * 2"})";
  const std::string condition = R"("matchConditions":[{"name":"c","expression":"variables.count > 1"}],)";
  ExpectCompiled(
      "ValidatingAdmissionPolicy",
      {{policy(count + "," + most, "variables.most < 10"), "", "", ""},
       {policy(most + "," + count, "true"), "spec.variables[0].expression", "variables.count * 2",
        Undeclared("variables.count * 2", "variables")},
       {policy(count, "variables.none == 1"), "spec.validations[0].expression", "variables.none == 1",
        "compilation failed: ERROR: <input>:1:10: undefined field 'none'\n | variables.none == 1\n | "
        ".........^"},
       {policy(count, "variables.count == 'x'"), "spec.validations[0].expression", "variables.count == 'x'",
        "compilation failed: ERROR: <input>:1:17: found no matching overload for '_==_' applied to '(int, "
        "string)'\n | variables.count == 'x'\n | ................^"},
       // One that does not compile may be anything.
       {policy(R"({"name":"bad","expression":"x"})", "variables.bad == 1"), "spec.variables[0].expression",
        "x", Undeclared("x", "x")},
       {condition + policy(count, "true"), "spec.matchConditions[0].expression", "variables.count > 1",
        Undeclared("variables.count > 1", "variables")}});
}

TEST(AdmissionRules, MutationsAreObjectsOrPatches) {
  const auto apply = [](const std::string& text) {
    return R"("reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration",)"
           R"("applyConfiguration":{"expression":")" +
           text + R"("}}])";
  };
  const auto patch = [](const std::string& text) {
    return R"("reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch",)"
           R"("jsonPatch":{"expression":")" +
           text + R"("}}])";
  };
  ExpectCompiled(
      "MutatingAdmissionPolicy",
      {{apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"), "", "", ""},
       {apply("has(object.spec) ? Object{spec: Object.spec{replicas: 1}} : Object{}"), "", "", ""},
       {apply("Object.spec{}"), "spec.mutations[0].applyConfiguration.expression", "Object.spec{}",
        "must evaluate to Object but got Object.spec"},
       {apply("{'a': 1}"), "spec.mutations[0].applyConfiguration.expression", "{'a': 1}",
        "must evaluate to Object but got map(string, int)"},
       {patch("[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'x'}]"),
        "", "", ""},
       {patch("[JSONPatch{op: 1, path: '/a'}]"), "spec.mutations[0].jsonPatch.expression",
        "[JSONPatch{op: 1, path: '/a'}]",
        "compilation failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided "
        "type "
        "is 'int'\n | [JSONPatch{op: 1, path: '/a'}]\n | .............^"},
       {patch("[Object{}]"), "spec.mutations[0].jsonPatch.expression", "[Object{}]",
        "must evaluate to list(JSONPatch) but got list(Object)"}});
}

TEST(AdmissionRules, MatchConditionsOfWebhooksCompile) {
  const auto condition = [](const std::string& text) {
    return R"(,"matchConditions":[{"name":"c","expression":")" + text + R"("}])";
  };
  for (const char* kind : {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}) {
    ExpectErrors(
        kV1, kind,
        {{Hooks(
              condition("object.metadata.name != 'skip-me' && authorizer.path('/x').check('get').allowed()")),
          {}},
         {Hooks(condition("object.metadata.name")),
          {"webhooks[0].matchConditions[0].expression: Invalid value: \"object.metadata.name\": must "
           "evaluate "
           "to bool but got dyn"}},
         {Hooks(condition("[] bad")),
          {"webhooks[0].matchConditions[0].expression: Invalid value: \"[] bad\": compilation failed: "
           "ERROR: "
           "<input>:1:4: Syntax error: extraneous input 'bad' expecting <EOF>\n | [] bad\n | ...^"}}});
  }
}

TEST(AdmissionRules, KnownExpressionsStay) {
  const auto policy = [](const std::string& expression) {
    return Policy(R"("validations":[{"expression":")" + expression + R"("}])");
  };
  ExpectUpdateErrors(
      kV1, "ValidatingAdmissionPolicy", "",
      {{policy("true"), policy("false"), {}},
       {policy("true"),
        policy("1"),
        {"spec.validations[0].expression: Invalid value: \"1\": must evaluate to bool but got int"}}});
  // Conditions that an older server has accepted are not looked at again, unless one of them changes.
  const auto hooks = [](const std::string& timeout, const std::string& expression) {
    return Hooks(timeout + R"(,"matchConditions":[{"name":"c","expression":")" + expression + R"("}])");
  };
  ExpectUpdateErrors(
      kV1, "ValidatingWebhookConfiguration", "",
      {{hooks("", "1"), hooks(R"(,"timeoutSeconds":3)", "1"), {}},
       {hooks("", "1"),
        hooks("", "2"),
        {"webhooks[0].matchConditions[0].expression: Invalid value: \"2\": must evaluate to bool but got "
         "int"}}});
}

}  // namespace
}  // namespace keelson::k8s
