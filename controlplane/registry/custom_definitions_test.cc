// Custom resources of a registry while their definitions change.
#include <boost/json.hpp>

#include "controlplane/registry/testing/fixture.h"
#include "lib/api/codec/custom_object.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/types.h"

namespace keelson::registry {
namespace {

using Definition = api::apiextensions::v1::CustomResourceDefinition;

class CustomDefinitions : public RegistryTest {
 protected:
  static const ResourceInfo& StatusRow() {
    return *api::FindResource("apiextensions.k8s.io", "v1", "customresourcedefinitions/status");
  }
  static void SetCondition(Definition& definition, const std::string& type, const std::string& status) {
    auto& condition = *definition.mutable_status()->add_conditions();
    condition.set_type(type);
    condition.set_status(status);
    condition.set_reason("Test");
    *condition.mutable_last_transition_time() = api::ToTime(Clock::Real().Now());
  }
  // As the controller leaves a definition without conflicts. `more`: members of its version v1, each with a comma.
  void Define(const std::string& plural, const std::string& kind, const std::string& more = "") {
    Definition wanted;
    const std::string text =
        R"({"metadata":{"name":")" + plural +
        R"(.example.com"},"spec":{"group":"example.com","scope":"Namespaced",)" + R"("names":{"plural":")" +
        plural + R"(","singular":")" + plural + R"(","kind":")" + kind + R"(","listKind":")" + kind +
        R"(List"},"versions":[{"name":"v1","served":true,"storage":true,)" + more + R"("schema":)" +
        R"({"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},)" +
        R"({"name":"v2","served":false,"storage":false,"schema":)" +
        R"({"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})";
    ASSERT_TRUE(api::DecodeJson(text, wanted));
    auto made = Create(wanted, "");
    ASSERT_TRUE(made) << made.error().message();
    SetCondition(*made, "NamesAccepted", "True");
    SetCondition(*made, "Established", "True");
    *made->mutable_status()->mutable_accepted_names() = made->spec().names();
    auto established = Update(*made, &StatusRow());
    ASSERT_TRUE(established) << established.error().message();
    // The cache has it.
    ASSERT_TRUE(Get<Definition>(plural + ".example.com", ""));
  }
  const ResourceInfo* FindKind(const std::string& kind, const std::string& version = "v1") {
    return (*plane_)->FindKind("example.com", version, kind);
  }
  static std::unique_ptr<Message> Object(const ResourceInfo& row, const std::string& name) {
    std::unique_ptr<Message> object = api::NewObject(row.descriptor());
    api::MutableMeta(*object).set_name(name);
    api::SetContent(*object, {{"apiVersion", "example.com/v1"}, {"kind", row.kind}});
    return object;
  }
};

TEST_F(CustomDefinitions, KindsAreFoundAsDefinitionsComeAndGo) {
  EXPECT_EQ(FindKind("Widget"), nullptr);
  Define("widgets", "Widget");
  Define("gears", "Gear");
  ASSERT_NE(FindKind("Widget"), nullptr);
  EXPECT_EQ(FindKind("Widget")->resource, "widgets");
  EXPECT_EQ(FindKind("Widget"), FindKind("Widget"));
  EXPECT_EQ(FindKind("Gear")->resource, "gears");
  EXPECT_EQ(FindKind("Widget", "v2"), nullptr) << "not served";
  EXPECT_EQ(FindKind("Widget", "v3"), nullptr);
  EXPECT_EQ(FindKind("widgets"), nullptr);
  EXPECT_EQ((*plane_)->FindKind("example.org", "v1", "Widget"), nullptr);
  EXPECT_EQ((*plane_)->FindKind("apps", "v1", "Deployment"), &Row<appsv1::Deployment>());
  // A version that is served from now on.
  Definition definition = *Get<Definition>("widgets.example.com", "");
  definition.mutable_spec()->mutable_versions(1)->set_served(true);
  ASSERT_TRUE(Update(definition));
  ASSERT_TRUE(Get<Definition>("widgets.example.com", ""));
  ASSERT_NE(FindKind("Widget", "v2"), nullptr);
  EXPECT_EQ(FindKind("Widget", "v2")->version, "v2");
  // The finalizer holds it as long as it may have objects.
  ASSERT_TRUE(Delete(Row<Definition>(), "gears.example.com", {}, ""));
  definition = *Get<Definition>("gears.example.com", "");
  EXPECT_NE(FindKind("Gear"), nullptr);
  definition.mutable_metadata()->clear_finalizers();
  (void)Update(definition);
  ASSERT_FALSE(Get<Definition>("gears.example.com", ""));
  EXPECT_EQ(FindKind("Gear"), nullptr);
  EXPECT_NE(FindKind("Widget"), nullptr);
}

TEST_F(CustomDefinitions, FieldsWithoutASelectorAreRefusedInUpstreamsWords) {
  Define("widgets", "Widget");
  const ResourceInfo& row = *FindKind("Widget");
  auto list = [&](const std::string& selector) {
    ListOptions options;
    options.field_selector = selector;
    auto found = (*plane_)->List(row, "", options);
    return found ? "" : found.error().message();
  };
  EXPECT_EQ(list("metadata.name=a"), "");
  EXPECT_EQ(list("metadata.namespace=a"), "");
  EXPECT_EQ(list("spec.color=red"), "field label not supported: spec.color");
  EXPECT_EQ(list("metadata.uid=a"), "field label not supported: metadata.uid");
}

TEST_F(CustomDefinitions, ScalesAreHeldToUpstreamsRules) {
  Define("widgets", "Widget",
         R"("subresources":{"scale":{"specReplicasPath":".spec.replicas",)"
         R"("statusReplicasPath":".status.replicas","labelSelectorPath":".status.selector"}},)");
  const ResourceInfo& row = *FindKind("Widget");
  const ResourceInfo& scale = **(*plane_)->FindResource("example.com", "v1", "widgets/scale");
  auto create = [&](const std::string& name, boost::json::object content) {
    std::unique_ptr<Message> object = Object(row, name);
    content["apiVersion"] = "example.com/v1";
    content["kind"] = "Widget";
    api::SetContent(*object, content);
    auto made = (*plane_)->Create(row, "default", "", std::move(object), {});
    return made ? "" : made.error().message();
  };
  struct Case {
    boost::json::object content;
    const char* problem;
  };
  for (const Case& one :
       {Case{{{"spec", {{"replicas", 3'000'000'000}}}},
             ".spec.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647"},
        Case{{{"spec", {{"replicas", -1}}}},
             ".spec.replicas: Invalid value: -1: should be a non-negative integer"},
        Case{{{"spec", {{"replicas", "x"}}}},
             ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, "
             "expected int64"},
        Case{{{"spec", 1.5}},
             ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 1.5 is of the type float64, "
             "expected map[string]interface{}"},
        Case{{{"status", {{"replicas", -2}}}},
             ".status.replicas: Invalid value: -2: should be a non-negative integer"},
        Case{
            {{"status", {{"selector", 5}}}},
            ".status.selector: Invalid value: \"\": .status.selector accessor error: 5 is of the type int64, "
            "expected string"}}) {
    EXPECT_EQ(create("bad", one.content),
              std::string("Widget.example.com \"bad\" is invalid: ") + one.problem);
  }
  // An object without a number has no scale before somebody sets one.
  ASSERT_EQ(create("a", {{"status", {{"replicas", 1}}}}), "");
  auto got = (*plane_)->Get(scale, "default", "a");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message(),
            "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist");
  auto patch = [&](const char* text) {
    return (*plane_)->Patch(scale, "default", "a", PatchType::kMerge, text, {});
  };
  auto empty = patch("{}");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code(), Code::kBadRequest);
  EXPECT_EQ(empty.error().message(), "the spec replicas field \".spec.replicas\" cannot be empty");
  auto negative = patch(R"({"spec":{"replicas":-3}})");
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().message(),
            "Widget.example.com \"a\" is invalid: .spec.replicas: Invalid value: -3: should be a "
            "non-negative integer");
  auto scaled = patch(R"({"spec":{"replicas":2}})");
  ASSERT_TRUE(scaled) << scaled.error().message();
  EXPECT_TRUE((*plane_)->Get(scale, "default", "a"));
}

TEST_F(CustomDefinitions, NothingIsStoredBehindADefinitionThatGoes) {
  Define("widgets", "Widget");
  const ResourceInfo& row = *FindKind("Widget");
  ASSERT_TRUE((*plane_)->Create(row, "default", "", Object(row, "before"), {}));
  // Admission takes so long that the deletion of the objects begins meanwhile.
  WriteOptions options;
  bool begun = false;
  options.admission = [&](AdmissionPhase phase, Operation, const ResourceInfo&, Message*,
                          const Message*) -> Result<> {
    if (phase != AdmissionPhase::kValidate || std::exchange(begun, true)) return {};
    Definition definition = *Get<Definition>("widgets.example.com", "");
    SetCondition(definition, "Terminating", "True");
    EXPECT_TRUE(Update(definition, &StatusRow()));
    EXPECT_TRUE(Get<Definition>("widgets.example.com", ""));
    return {};
  };
  auto late = (*plane_)->Create(row, "default", "", Object(row, "late"), options);
  ASSERT_FALSE(late);
  EXPECT_TRUE(begun);
  EXPECT_EQ(late.error().code(), Code::kMethodNotAllowed) << late.error().message();
  EXPECT_EQ(late.error().message(), "create not allowed while custom resource definition is terminating");
  EXPECT_EQ((*plane_)->List(row, "", {})->items.size(), 1u);
}

TEST_F(CustomDefinitions, NothingIsCreatedOnceADefinitionIsDeleted) {
  Define("widgets", "Widget");
  const ResourceInfo& row = *FindKind("Widget");
  // The condition Terminating says more only later, and nothing once the objects are gone.
  ASSERT_TRUE(Delete(Row<Definition>(), "widgets.example.com", {}, ""));
  ASSERT_TRUE(Get<Definition>("widgets.example.com", "")) << "its finalizer holds it";
  auto late = (*plane_)->Create(row, "default", "", Object(row, "late"), {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kMethodNotAllowed) << late.error().message();
}

TEST_F(CustomDefinitions, AServerThatLagsStoresNothingBehindADefinition) {
  Define("widgets", "Widget");
  Plane other(*etcd_);
  const ResourceInfo& row = *other->FindKind("example.com", "v1", "Widget");
  ASSERT_TRUE(other->Create(row, "default", "", Object(row, "before"), {}));
  other.StopFollowing();
  // The whole deletion takes place between the other server's look at the definition and its write.
  ASSERT_TRUE((*plane_)->DeleteCustomObjects("example.com", "widgets", {}));
  ASSERT_TRUE(Delete(Row<Definition>(), "widgets.example.com", {}, ""));
  Definition definition = *Get<Definition>("widgets.example.com", "");
  definition.mutable_metadata()->clear_finalizers();
  (void)Update(definition);
  ASSERT_FALSE(Get<Definition>("widgets.example.com", ""));
  WriteOptions options;
  options.deadline = SteadyTime::clock::now() + std::chrono::seconds(1);
  EXPECT_FALSE(other->Create(row, "default", "", Object(row, "late"), options));
  auto left = other.client().Range("/registry/example.com/widgets/",
                                   {etcd::PrefixEnd("/registry/example.com/widgets/")}, {});
  ASSERT_TRUE(left) << left.error().message();
  EXPECT_TRUE(left->kvs.empty()) << left->kvs[0].key;
}

TEST_F(CustomDefinitions, ADefinitionThatChangesHoldsUpNoCreate) {
  Define("widgets", "Widget");
  Plane other(*etcd_);
  const ResourceInfo& row = *other->FindKind("example.com", "v1", "Widget");
  for (int i = 0; i < 20; ++i) {
    Definition definition = *Get<Definition>("widgets.example.com", "");
    (*definition.mutable_metadata()->mutable_labels())["round"] = std::to_string(i);
    ASSERT_TRUE(Update(definition));
    // The other server may not have heard of the change yet.
    auto made = other->Create(row, "default", "", Object(row, "o" + std::to_string(i)), {});
    ASSERT_TRUE(made) << made.error().message();
  }
}

}  // namespace
}  // namespace keelson::registry
