// MutatingAdmissionPolicy: apply configurations, patches, reinvocation and failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/testing/object_store.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/api/proto/apps_v1.pb.h"

namespace keelson::apiserver {
namespace {

using registry::Operation;
using testing::HasSubstr;
namespace admissionv1 = api::admissionregistration::v1;

const User kAlice{"alice", "", {"dev"}, {}};

// Counts its calls, and adds a label when it is called.
class Labeler : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "Labeler"; }
  Result<> Mutate(const AdmissionRequest& request) override {
    (*api::MutableMeta(*request.object).mutable_labels())["calls"] = std::to_string(++calls_);
    return {};
  }

 private:
  int calls_ = 0;
};

class MutatingPolicies : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    store_ = std::make_unique<ObjectStore>();
    store_->Put<corev1::Namespace>(R"({"metadata":{"name":"ns"}})");
  }

  // A policy about deployments, and its binding.
  void Policy(const std::string& name, const std::string& mutations, const std::string& more = "",
              const std::string& binding = "") {
    Remove<admissionv1::MutatingAdmissionPolicy>(name);
    Remove<admissionv1::MutatingAdmissionPolicyBinding>(name);
    store_->Put<admissionv1::MutatingAdmissionPolicy>(fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"matchConstraints":{{"resourceRules":[{{"operations":["*"],
            "apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"]}}]}},
            "mutations":[{}]{}}}}})",
        name, mutations, more));
    store_->Put<admissionv1::MutatingAdmissionPolicyBinding>(
        fmt::format(R"({{"metadata":{{"name":"{0}"}},"spec":{{"policyName":"{0}"{1}}}}})", name, binding));
  }
  static std::string Apply(const std::string& expression) {
    return R"({"patchType":"ApplyConfiguration","applyConfiguration":{"expression":")" + expression + "\"}}";
  }
  static std::string Patch(const std::string& expression) {
    return R"({"patchType":"JSONPatch","jsonPatch":{"expression":")" + expression + "\"}}";
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

  // One request through the plugin, and perhaps another one. Returns the error's message, "" when it is admitted.
  std::string Admit(bool labeler = false) {
    deployment_ = appsv1::Deployment();
    EXPECT_TRUE(api::DecodeJson(
        R"({"metadata":{"name":"x","namespace":"ns","labels":{"a":"1"}},"spec":{"replicas":1,
            "selector":{"matchLabels":{"a":"1"}},"template":{"metadata":{"labels":{"a":"1"}},
            "spec":{"containers":[{"name":"c","image":"i"}]}}}})",
        deployment_));
    std::vector<PluginPtr> plugins;
    plugins.push_back(NewMutatingPolicies(store_->get(), std::make_shared<RbacAuthorizer>(), api::FindKind));
    if (labeler) plugins.push_back(std::make_unique<Labeler>());
    const AdmissionChain chain(std::move(plugins));
    notes_ = {};
    const AdmissionRequest request{Operation::kCreate,
                                   api::ResourceOf<appsv1::Deployment>(),
                                   "ns",
                                   "x",
                                   &deployment_,
                                   nullptr,
                                   kAlice,
                                   false,
                                   &notes_,
                                   "create"};
    const Result<> result = chain.Mutate(request);
    code_ = result ? 200 : HttpStatus(result.error().code());
    return result ? "" : result.error().message();
  }
  std::string Label(const std::string& name) const {
    const auto& labels = deployment_.metadata().labels();
    const auto found = labels.find(name);
    return found == labels.end() ? "" : found->second;
  }

  std::unique_ptr<ObjectStore> store_;
  appsv1::Deployment deployment_;
  AdmissionNotes notes_;
  int code_ = 0;
};

TEST_F(MutatingPolicies, ApplyConfigurationsMerge) {
  Policy("p",
         Apply("Object{metadata: Object.metadata{labels: {'b': object.metadata.labels['a'] + '2'}}, spec: "
               "Object.spec{replicas: variables.count, template: Object.spec.template{spec: "
               "Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'w', "
               "image: 'j'}]}}}}"),
         R"(,"variables":[{"name":"count","expression":"object.spec.replicas + 2"}])");
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(Label("a"), "1");
  EXPECT_EQ(Label("b"), "12");
  EXPECT_EQ(deployment_.spec().replicas(), 3);
  std::vector<std::string> names;
  for (const auto& container : deployment_.spec().template_().spec().containers()) {
    names.push_back(container.name());
    // With defaults.
    if (container.name() == "w") {
      EXPECT_EQ(container.termination_message_policy(), "File");
    }
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("c", "w"));
}

TEST_F(MutatingPolicies, PatchesChangeWhatTheyName) {
  Policy("p",
         Patch("[JSONPatch{op: 'test', path: '/spec/replicas', value: 1}, JSONPatch{op: 'replace', path: "
               "'/spec/replicas', value: 5}, JSONPatch{op: 'add', path: '/metadata/labels/' + "
               "jsonpatch.escapeKey('x/y'), value: 'z'}, JSONPatch{op: 'add', path: "
               "'/spec/template/spec/tolerations', value: [Object.spec.template.spec.tolerations{key: "
               "'k'}]}]"));
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(deployment_.spec().replicas(), 5);
  EXPECT_EQ(Label("x/y"), "z");
  EXPECT_EQ(deployment_.spec().template_().spec().tolerations(0).key(), "k");
  // A test that fails leaves all as it is.
  Policy("p",
         Patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 5}, JSONPatch{op: 'test', path: "
               "'/spec/replicas', value: 1}]"));
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(deployment_.spec().replicas(), 1);
}

TEST_F(MutatingPolicies, MutationsSeeThoseBefore) {
  Policy("a",
         Patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}]") + "," +
             Patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas * 10}]"));
  Policy("b", Patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 3}]"),
         R"(,"matchConditions":[{"name":"c","expression":"object.spec.replicas == 20"}])");
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(deployment_.spec().replicas(), 23);
}

TEST_F(MutatingPolicies, FailuresFollowThePolicy) {
  const std::string head = "policy 'p' with binding 'p' denied request: ";
  const std::pair<std::string, std::string> cases[] = {
      {Apply("Object{spec: Object.spec{replicas: object.none}}"),
       "expression 'Object{spec: Object.spec{replicas: object.none}}' resulted in error: no such key: none"},
      {Apply("Object{spec: Object.spec{none: 1}}"),
       "error applying patch: failed to convert patch object to typed object: .spec.none: field not declared "
       "in "
       "schema"},
      {Apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}"),
       "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
       ".spec.selector"},
      {Apply("Object{spec: Object.status{}}"),
       "type mismatch: unexpected type name \"Object.status\", expected \"Object.spec\", which matches field "
       "name "
       "path from root Object type"},
      {Apply("x"), "compilation failed: ERROR: <input>:1:1: undeclared reference to 'x'"},
      {Patch("[JSONPatch{op: 'remove', path: '/none'}]"), "JSONPath: "},
  };
  for (const auto& [mutation, why] : cases) {
    Policy("p", mutation);
    EXPECT_THAT(Admit(), HasSubstr(head + why)) << mutation;
    EXPECT_EQ(code_, 403);
    ASSERT_TRUE(notes_.denial);
    EXPECT_EQ(notes_.denial->reason(), "Invalid");
    EXPECT_EQ(notes_.denial->code(), 403);
    Policy("p", mutation, R"(,"failurePolicy":"Ignore")");
    EXPECT_EQ(Admit(), "") << mutation;
  }
  // A result that is no object of the kind is an error of the server, whatever the policy says.
  Policy("p", Patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 'x'}]"),
         R"(,"failurePolicy":"Ignore")");
  EXPECT_THAT(Admit(), HasSubstr("Internal error occurred: "));
  EXPECT_EQ(code_, 500);
  Policy("p", Apply("Object{}"), R"(,"paramKind":{"apiVersion":"v1","kind":"None"})");
  EXPECT_EQ(Admit(),
            "policy \"p\" denied request: failed to configure policy: failed to find resource referenced by "
            "paramKind: '/v1, Kind=None'");
  EXPECT_EQ(notes_.denial->reason(), "Forbidden");
}

TEST_F(MutatingPolicies, ParametersOfBindings) {
  for (const char* name : {"a", "b"}) {
    store_->Put<corev1::ConfigMap>(fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"ns","labels":{{"l":"1"}}}},"data":{{"key":"k{0}"}}}})",
        name));
  }
  Policy("p", Apply("Object{metadata: Object.metadata{labels: {params.data.key: 'yes'}}}"),
         R"(,"paramKind":{"apiVersion":"v1","kind":"ConfigMap"})",
         R"(,"paramRef":{"selector":{"matchLabels":{"l":"1"}}})");
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(Label("ka"), "yes");
  EXPECT_EQ(Label("kb"), "yes");
}

TEST_F(MutatingPolicies, LaterChangesAreSeenOnRequest) {
  const std::string count =
      Patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}]");
  // The other plugin changes the object after the policy, in each of the two runs.
  Policy("p", count, R"(,"reinvocationPolicy":"Never")");
  EXPECT_EQ(Admit(true), "");
  EXPECT_EQ(deployment_.spec().replicas(), 2);
  Policy("p", count, R"(,"reinvocationPolicy":"IfNeeded")");
  EXPECT_EQ(Admit(true), "");
  EXPECT_EQ(deployment_.spec().replicas(), 3);
}

}  // namespace
}  // namespace keelson::apiserver
