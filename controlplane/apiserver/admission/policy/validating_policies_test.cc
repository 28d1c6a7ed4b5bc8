// ValidatingAdmissionPolicy: bindings, parameters, actions and failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/testing/object_store.h"
#include "controlplane/apiserver/admission/testing/pod_readers.h"
#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/api/proto/apps_v1.pb.h"
#include "lib/api/proto/autoscaling_v1.pb.h"
#include "lib/k8s/defaulting/defaulting.h"

namespace keelson::apiserver {
namespace {

using registry::Operation;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
namespace admissionv1 = api::admissionregistration::v1;

const User kUser{"alice", "", {"dev"}, {}};

constexpr char kMaps[] =
    R"("resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}])";

class ValidatingPolicies : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    store_ = std::make_unique<ObjectStore>();
    plugin_ = NewValidatingPolicies(store_->get(), std::make_shared<PodReaders>(), api::FindKind);
    store_->Put<corev1::Namespace>(R"({"metadata":{"name":"ns","labels":{"env":"prod"}}})");
    Object<corev1::ConfigMap>(R"({"metadata":{"name":"x","namespace":"ns"},"data":{"count":"3"}})");
  }

  // A policy with these fields in its spec.
  void Policy(const std::string& name, const std::string& spec, const std::string& match = kMaps) {
    Remove<admissionv1::ValidatingAdmissionPolicy>(name);
    store_->Put<admissionv1::ValidatingAdmissionPolicy>(fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"matchConstraints":{{{}}},{}}}}})", name, match, spec));
  }
  void Rule(const std::string& name, const std::string& expression, const std::string& more = "") {
    Policy(name, R"("validations":[{"expression":")" + expression + "\"" + more + "}]");
  }
  void Bind(const std::string& name, const std::string& policy, const std::string& actions = R"("Deny")",
            const std::string& more = "") {
    Remove<admissionv1::ValidatingAdmissionPolicyBinding>(name);
    store_->Put<admissionv1::ValidatingAdmissionPolicyBinding>(fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"policyName":"{}","validationActions":[{}]{}}}}})", name,
        policy, actions, more));
  }
  template <typename T>
  void Remove(const std::string& key) {
    const api::ResourceInfo& info = api::ResourceOf<T>();
    const storage::ObjectPtr object = store_->get().Peek(info, key);
    if (!object) return;
    storage::Conflict conflict;
    ASSERT_TRUE(store_->get().Delete(info, key, object->revision(), conflict, {}));
    ASSERT_TRUE(store_->get().Get(info, key, "", {}));
  }
  template <typename T>
  void Object(std::string_view text) {
    auto object = std::make_unique<T>();
    EXPECT_TRUE(api::DecodeJson(text, *object)) << text;
    object_ = std::move(object);
    info_ = &api::ResourceOf<T>();
  }

  // One request. Returns the error's message, "" when it is admitted.
  std::string Admit(Operation operation = Operation::kCreate) {
    notes_ = {};
    const bool deletes = operation == Operation::kDelete;
    const AdmissionRequest request{operation,
                                   *info_,
                                   info_->namespaced ? "ns" : "",
                                   "x",
                                   deletes ? nullptr : object_.get(),
                                   operation == Operation::kCreate ? nullptr : object_.get(),
                                   kUser,
                                   false,
                                   &notes_,
                                   "create"};
    const Result<> result = plugin_->Validate(request);
    code_ = result ? 200 : HttpStatus(result.error().code());
    causes_.clear();
    if (!result && result.error().details()) {
      for (const ErrorCause& cause : result.error().details()->causes) causes_.push_back(cause.message);
    }
    return result ? "" : result.error().message();
  }
  // The same, without the words that every denial by the policy and binding "p" has.
  std::string Why(Operation operation = Operation::kCreate) {
    const std::string error = Admit(operation);
    const std::string head =
        "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: ";
    return error.starts_with(head) ? error.substr(head.size()) : error;
  }

  std::unique_ptr<ObjectStore> store_;
  PluginPtr plugin_;
  std::unique_ptr<api::Message> object_;
  const api::ResourceInfo* info_ = nullptr;
  AdmissionNotes notes_;
  int code_ = 0;
  std::vector<std::string> causes_;
};

TEST_F(ValidatingPolicies, BindingsPutPoliciesIntoForce) {
  Rule("p", "object.data.count != '3'");
  EXPECT_EQ(Admit(), "");
  Bind("p", "p");
  EXPECT_EQ(Admit(),
            "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: "
            "failed expression: object.data.count != '3'");
  EXPECT_EQ(code_, 422);
  EXPECT_THAT(causes_, ElementsAre("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed "
                                   "expression: object.data.count != '3'"));
  // A new revision counts at once.
  Rule("p", "object.data.count == '3'");
  EXPECT_EQ(Admit(), "");
  Rule("p", "false");
  Remove<admissionv1::ValidatingAdmissionPolicyBinding>("p");
  EXPECT_EQ(Admit(), "");
  Bind("p", "none");
  EXPECT_EQ(Admit(), "");
}

TEST_F(ValidatingPolicies, ReasonsAndMessages) {
  Bind("p", "p");
  const struct {
    const char* more;
    const char* message;
    int code = 422;
  } cases[] = {
      {"", "failed expression: false"},
      {R"(,"message":" no ","reason":"Forbidden")", "no", 403},
      {R"(,"reason":"RequestEntityTooLarge")", "failed expression: false", 413},
      {R"(,"reason":"Invalid")", "failed expression: false"},
      {R"(,"message":"no","messageExpression":"object.metadata.name + ' has ' + object.data.count")",
       "x has 3"},
      {R"(,"message":"no","messageExpression":"object.none")", "no"},
      {R"(,"message":"no","messageExpression":"' '")", "no"},
      {R"(,"message":"no","messageExpression":"'a\\n b'")", "no"},
      {R"(,"messageExpression":"'a' + 1")", "failed expression: false"},
  };
  for (const auto& c : cases) {
    Rule("p", "false", c.more);
    EXPECT_EQ(Why(), c.message) << c.more;
    EXPECT_EQ(code_, c.code) << c.more;
  }
}

TEST_F(ValidatingPolicies, ExpressionsSeeTheRequest) {
  Bind("p", "p");
  for (const char* expression :
       {"object.kind == 'ConfigMap' && object.apiVersion == 'v1' && oldObject == null",
        "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'",
        "request.name == 'x' && request.namespace == 'ns' && request.operation == 'CREATE'",
        "request.userInfo.username == 'alice' && 'dev' in request.userInfo.groups && !request.dryRun",
        "!has(request.subResource)", "params == null || true",
        "namespaceObject.metadata.name == 'ns' && namespaceObject.metadata.labels['env'] == 'prod'",
        "authorizer.group('').resource('pods').check('get').allowed()",
        "!authorizer.requestResource.check('create').allowed()"}) {
    Policy("p", R"("paramKind":{"apiVersion":"v1","kind":"Secret"},"validations":[{"expression":")" +
                    std::string(expression) + "\"}]");
    EXPECT_EQ(Why(), "") << expression;
  }
  Rule("p", "object == null && oldObject.data.count == '3'");
  EXPECT_EQ(Why(Operation::kDelete), "");
}

TEST_F(ValidatingPolicies, VariablesAreEvaluatedOnce) {
  Bind("p", "p");
  const std::string variables = R"x("variables":[{"name":"count","expression":"int(object.data.count)"},
                      {"name":"twice","expression":"variables.count * 2"},
                      {"name":"bad","expression":"object.none"},
                      {"name":"odd","expression":"variables.twice % 2 == 1"}],)x";
  const auto rule = [&](const std::string& expression) {
    Policy("p", variables + R"("validations":[{"expression":")" + expression +
                    R"x(","messageExpression":"'twice: ' + string(variables.twice)"}])x");
    return Why();
  };
  EXPECT_EQ(rule("variables.twice == 6 && variables.count == 3"), "");
  EXPECT_EQ(rule("variables.odd"), "twice: 6");
  EXPECT_EQ(
      rule("variables.bad == 1"),
      "expression 'variables.bad == 1' resulted in error: composited variable \"bad\" fails to evaluate: "
      "no such key: none");
  EXPECT_EQ(rule("variables.bad == 1 || true"), "");
}

TEST_F(ValidatingPolicies, FailuresFollowThePolicy) {
  Bind("p", "p");
  const auto outcome = [&](const std::string& spec, const std::string& match = kMaps) {
    Policy("p", spec, match);
    std::string closed = Why();
    Policy("p", R"("failurePolicy":"Ignore",)" + spec, match);
    EXPECT_EQ(Admit(), "") << spec;
    return closed;
  };
  EXPECT_EQ(outcome(R"("validations":[{"expression":"object.none == 1","message":"m"}])"),
            "expression 'object.none == 1' resulted in error: no such key: none");
  EXPECT_THAT(outcome(R"("validations":[{"expression":"x"}])"),
              HasSubstr("compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference"));
  EXPECT_EQ(outcome(R"("matchConditions":[{"name":"c","expression":"object.none == 1"}],
                       "validations":[{"expression":"true"}])"),
            "expression 'object.none == 1' resulted in error: no such key: none");
  EXPECT_THAT(
      outcome(R"("paramKind":{"apiVersion":"example.com/v1","kind":"None"},
                         "validations":[{"expression":"true"}])"),
      HasSubstr("ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find "
                "resource referenced by paramKind: 'example.com/v1, Kind=None'"));
  // 350,000 a check: above 10,000,000 together, though no expression is above its own limit.
  std::string many;
  for (int i = 0; i < 29; ++i) {
    many += std::string(i ? "," : "") +
            R"({"expression":"authorizer.path('/x').check('get').allowed() || true"})";
  }
  EXPECT_EQ(outcome(R"("validations":[)" + many + "]"),
            "validation failed due to running out of cost budget, no further validation rules will be run");
  // A false match condition is no failure.
  Policy("p", R"("matchConditions":[{"name":"c","expression":"object.metadata.name != 'x'"}],
                 "validations":[{"expression":"false"}])");
  EXPECT_EQ(Admit(), "");
}

TEST_F(ValidatingPolicies, ActionsWarnAuditAndDeny) {
  Rule("p", "false", R"(,"message":"no \"maps\"")");
  Bind("p", "p", R"("Warn","Audit")");
  EXPECT_EQ(Admit(), "");
  EXPECT_THAT(notes_.told,
              ElementsAre("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': no "
                          "\"maps\""));
  EXPECT_THAT(notes_.annotations,
              ElementsAre(Pair("validation.policy.admission.k8s.io/validation_failure",
                               R"([{"message":"no \"maps\"","policy":"p","binding":"p","expressionIndex":0,)"
                               R"("validationActions":["Warn","Audit"]}])")));
  Bind("p", "p", R"("Deny","Audit")");
  EXPECT_EQ(Why(), "no \"maps\"");
  EXPECT_THAT(notes_.told, IsEmpty());
  EXPECT_EQ(notes_.annotations.size(), 1U);
}

TEST_F(ValidatingPolicies, AuditAnnotations) {
  Bind("p", "p", R"("Deny")");
  const auto annotate = [&](const std::string& expression, const std::string& more = "") {
    Policy("p", more + R"("auditAnnotations":[{"key":"k","valueExpression":")" + expression + "\"}]");
    return Why();
  };
  EXPECT_EQ(annotate("'count: ' + object.data.count"), "");
  EXPECT_THAT(notes_.annotations, ElementsAre(Pair("p/k", "count: 3")));
  EXPECT_EQ(annotate("null"), "");
  EXPECT_THAT(notes_.annotations, IsEmpty());
  EXPECT_EQ(annotate("'' + object.none"),
            "expression ''' + object.none' resulted in error: no such key: none");
  EXPECT_EQ(annotate("'' + object.none", R"("failurePolicy":"Ignore",)"), "");
  // Bindings with different parameters: all values.
  for (const char* name : {"a", "b"}) {
    store_->Put<corev1::ConfigMap>(
        fmt::format(R"({{"metadata":{{"name":"{}","namespace":"ns","labels":{{"l":"1"}}}}}})", name));
  }
  Bind("p", "p", R"("Deny")", R"(,"paramRef":{"selector":{"matchLabels":{"l":"1"}}})");
  EXPECT_EQ(
      annotate("string(params.metadata.name)", R"("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},)"), "");
  EXPECT_THAT(notes_.annotations, ElementsAre(Pair("p/k", "a, b")));
}

TEST_F(ValidatingPolicies, ParametersByNameAndLabels) {
  const std::string kind = R"("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},)";
  Policy("p", kind + R"("validations":[{"expression":"object.data.count <= params.data.most",
                                       "messageExpression":"'above ' + params.metadata.name"}])");
  const auto bind = [&](const std::string& reference) {
    Bind("p", "p", R"("Deny")", R"(,"paramRef":{)" + reference + "}");
    return Why();
  };
  const std::string deny = R"(,"parameterNotFoundAction":"Deny")",
                    allow = R"(,"parameterNotFoundAction":"Allow")";
  const std::string none =
      "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
  EXPECT_EQ(bind(R"("name":"limit")" + deny), none);
  EXPECT_EQ(bind(R"("name":"limit")" + allow), "");
  store_->Put<corev1::ConfigMap>(
      R"({"metadata":{"name":"limit","namespace":"ns","labels":{"l":"1"}},"data":{"most":"2"}})");
  store_->Put<corev1::ConfigMap>(R"({"metadata":{"name":"limit","namespace":"other"},"data":{"most":"3"}})");
  EXPECT_EQ(bind(R"("name":"limit")" + deny), "above limit");
  EXPECT_EQ(bind(R"("name":"limit","namespace":"other")" + deny), "");
  EXPECT_EQ(bind(R"("selector":{"matchLabels":{"l":"1"}})" + deny), "above limit");
  EXPECT_EQ(bind(R"("selector":{"matchLabels":{"l":"2"}})" + deny), none);
  // Without a reference params is null.
  Bind("p", "p");
  EXPECT_THAT(Why(), HasSubstr("resulted in error: no such key: data"));
  // A cluster-scoped request has no namespace for namespaced parameters.
  const std::string nodes =
      R"("resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["nodes"]}])";
  Policy("p", kind + R"("validations":[{"expression":"true"}])", nodes);
  Bind("p", "p", R"("Deny")", R"(,"paramRef":{"name":"limit"})");
  Object<corev1::Node>(R"({"metadata":{"name":"x"}})");
  EXPECT_THAT(Admit(),
              HasSubstr("cannot use namespaced paramRef in policy binding that matches cluster-scoped "
                        "resources"));
  Policy("p", R"("paramKind":{"apiVersion":"v1","kind":"Node"},"validations":[{"expression":"true"}])",
         nodes);
  Bind("p", "p", R"("Deny")", R"(,"paramRef":{"name":"limit","namespace":"ns"})");
  EXPECT_THAT(Admit(), HasSubstr("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"));
}

TEST_F(ValidatingPolicies, BindingsNarrowThePolicy) {
  Rule("p", "false");
  const auto bind = [&](const std::string& resources) {
    Bind("p", "p", R"("Deny")", R"(,"matchResources":{)" + resources + "}");
    return Admit();
  };
  const std::string denied = "denied request";
  EXPECT_THAT(bind(R"("namespaceSelector":{"matchLabels":{"env":"prod"}})"), HasSubstr(denied));
  EXPECT_EQ(bind(R"("namespaceSelector":{"matchLabels":{"env":"test"}})"), "");
  EXPECT_EQ(bind(R"("objectSelector":{"matchLabels":{"env":"test"}})"), "");
  const std::string rule =
      R"([{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"])";
  EXPECT_THAT(bind(R"("resourceRules":)" + rule + "}]"), HasSubstr(denied));
  EXPECT_EQ(bind(R"("resourceRules":)" + rule + R"(,"resourceNames":["y"]}])"), "");
  EXPECT_EQ(bind(R"("excludeResourceRules":)" + rule + "}]"), "");
}

TEST_F(ValidatingPolicies, EquivalentVersionsAreConverted) {
  Policy("p",
         R"x("validations":[{"expression":"object.apiVersion == 'autoscaling/v2' && has(object.spec.metrics)",
             "messageExpression":"request.requestKind.version + ' as ' + request.kind.version"}])x",
         R"("matchPolicy":"Equivalent","resourceRules":[{"operations":["*"],"apiGroups":["autoscaling"],)"
         R"("apiVersions":["v2"],"resources":["horizontalpodautoscalers"]}])");
  Bind("p", "p");
  Object<api::autoscaling::v1::HorizontalPodAutoscaler>(
      R"({"metadata":{"name":"x","namespace":"ns"},"spec":{"maxReplicas":2,"targetCPUUtilizationPercentage":50,
          "scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}})");
  EXPECT_EQ(Admit(), "");
  Policy("p", R"("validations":[{"expression":"false",
             "messageExpression":"request.requestKind.version + ' as ' + request.kind.version"}])",
         R"("matchPolicy":"Equivalent","resourceRules":[{"operations":["*"],"apiGroups":["autoscaling"],)"
         R"("apiVersions":["v2"],"resources":["horizontalpodautoscalers"]}])");
  EXPECT_THAT(Admit(), HasSubstr("denied request: v1 as v2"));
}

TEST_F(ValidatingPolicies, PoliciesAreBeyondPolicies) {
  Policy(
      "p", R"("validations":[{"expression":"false"}])",
      R"("resourceRules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}])");
  Bind("p", "p");
  Object<admissionv1::ValidatingAdmissionPolicy>(R"({"metadata":{"name":"x"}})");
  EXPECT_EQ(Admit(Operation::kDelete), "");
  Object<admissionv1::ValidatingAdmissionPolicyBinding>(R"({"metadata":{"name":"x"}})");
  EXPECT_EQ(Admit(), "");
  // Configurations of webhooks are not.
  Object<admissionv1::ValidatingWebhookConfiguration>(R"({"metadata":{"name":"x"}})");
  EXPECT_THAT(Admit(), HasSubstr("denied request"));
}

}  // namespace
}  // namespace keelson::apiserver
