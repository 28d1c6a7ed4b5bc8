// Values as kube-apiserver writes them, and those that a server of this version does not understand.
#include "controlplane/storage/survey/survey.h"

#include <gmock/gmock.h>

#include "lib/api/codec/codec.h"
#include "lib/api/types.h"

namespace keelson::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::SizeIs;

etcd::KeyValue Value(const std::string& key, const std::string& value) {
  etcd::KeyValue kv;
  kv.key = "/registry/" + key;
  kv.value = value;
  kv.mod_revision = 7;
  return kv;
}

corev1::ConfigMap Map(const std::string& ns, const std::string& name) {
  corev1::ConfigMap map;
  map.mutable_metadata()->set_namespace_(ns);
  map.mutable_metadata()->set_name(name);
  return map;
}

std::string Protobuf(const api::Message& message, const api::GroupVersionKind& gvk) {
  return api::EncodeProtobuf(message, gvk);
}

// As kube-apiserver stores it: JSON, in v1beta1.
constexpr char kDefinition[] =
    R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"things.example.com",)"
    R"("uid":"u"},"spec":{"group":"example.com","version":"v1","names":{"plural":"things","singular":"thing","kind":"Thing",)"
    R"("listKind":"ThingList"},"scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object"}},)"
    R"("versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"None"},)"
    R"("preserveUnknownFields":false},"status":{"conditions":[{"type":)"
    R"("NamesAccepted","status":"True"},{"type":"Established","status":"True"}],"acceptedNames":{"plural":"things",)"
    R"("singular":"thing","kind":"Thing","listKind":"ThingList"},"storedVersions":["v1"]}})";

class SurveyTest : public testing::Test {
 protected:
  std::string ProblemOf(const etcd::KeyValue& kv) {
    survey_.Add(kv);
    if (survey_.findings().empty()) return "";
    const Finding last = survey_.findings().back();
    EXPECT_EQ(last.key, kv.key);
    return last.problem;
  }
  Survey survey_{nullptr};
};

TEST_F(SurveyTest, WhatUpstreamWritesIsUnderstood) {
  survey_.Define(Value("apiextensions.k8s.io/customresourcedefinitions/things.example.com", kDefinition));
  const etcd::KeyValue values[] = {
      Value("configmaps/default/a", Protobuf(Map("default", "a"), {"", "v1", "ConfigMap"})),
      Value("configmaps/default/b",
            R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"default"}})"),
      Value("apiextensions.k8s.io/customresourcedefinitions/things.example.com", kDefinition),
      Value(
          "example.com/things/default/one",
          R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"one","namespace":"default"}})"),
      Value("horizontalpodautoscalers/default/h",
            R"({"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"h",)"
            R"("namespace":"default"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d",)"
            R"("apiVersion":"apps/v1"},"maxReplicas":3}})"),
      Value("ranges/servicenodeports", Protobuf(corev1::RangeAllocation(), {"", "v1", "RangeAllocation"})),
      Value("masterleases/192.0.2.1", Protobuf(corev1::Endpoints(), {"", "v1", "Endpoints"})),
      Value("peerserverleases/apiserver-x", Protobuf(corev1::Endpoints(), {"", "v1", "Endpoints"})),
  };
  for (const etcd::KeyValue& kv : values) EXPECT_EQ(ProblemOf(kv), "") << kv.key;
  EXPECT_THAT(
      survey_.forms(),
      ElementsAre(Key(StoredForm{"configmaps", "v1", "json", ""}),
                  Key(StoredForm{"configmaps", "v1", "protobuf", ""}),
                  Key(StoredForm{"customresourcedefinitions.apiextensions.k8s.io",
                                 "apiextensions.k8s.io/v1beta1", "json", ""}),
                  Key(StoredForm{"horizontalpodautoscalers.autoscaling", "autoscaling/v1", "json", ""}),
                  Key(StoredForm{"things.example.com", "example.com/v1", "json", ""})));
}

TEST_F(SurveyTest, WhatIsNotUnderstoodIsNamed) {
  survey_.Define(Value("apiextensions.k8s.io/customresourcedefinitions/things.example.com", kDefinition));
  // A field of a later version: 99 of ConfigMap, and 98 of its metadata.
  corev1::ConfigMap later = Map("default", "a");
  later.GetReflection()->MutableUnknownFields(&later)->AddVarint(99, 1);
  corev1::ConfigMap deep = Map("default", "a");
  metav1::ObjectMeta& meta = *deep.mutable_metadata();
  meta.GetReflection()->MutableUnknownFields(&meta)->AddVarint(98, 1);
  const api::GroupVersionKind map{"", "v1", "ConfigMap"};
  const std::pair<etcd::KeyValue, const char*> cases[] = {
      {Value("configmaps/default/a", Protobuf(later, map)), "does not know, and does not show: #99"},
      {Value("configmaps/default/a", Protobuf(deep, map)), "does not show: metadata.#98"},
      {Value(
           "configmaps/default/a",
           R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default"},"newer":1})"),
       "unknown field \"newer\""},
      {Value("configmaps/default/a", "k8s:enc:aescbc:v1:key1:bytes"), "cannot be decrypted (aescbc:v1:key1)"},
      {Value("configmaps/default/a", "bytes"), "is neither protobuf of the API nor JSON"},
      {Value("configmaps/default/a", Protobuf(Map("default", "a"), {"", "v1", "Secret"})),
       "stored object is a Secret, not a ConfigMap"},
      {Value("configmaps/default/a", Protobuf(Map("other", "a"), map)),
       "has another name or namespace than its key"},
      {Value("configmaps/a", Protobuf(Map("", "a"), map)),
       "configmaps have a key of the form NAMESPACE/NAME"},
      {Value("configmaps/default/a", Protobuf(Map("default", "a"), {"", "v9", "ConfigMap"})),
       "is stored as v9, which this server does not know: it is read as v1"},
      {Value("resourceclaims/default/a",
             R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1beta1","metadata":{"name":"a"}})"),
       "a ResourceClaim of resource.k8s.io/v1beta1, which this server cannot read"},
      {Value("gadgets/default/a", "{}"), "this server has no resource with such keys"},
      {Value("example.org/gadgets/default/a", "{}"),
       "there is no readable CustomResourceDefinition gadgets.example.org"},
      {Value(
           "example.com/things/default/one",
           R"({"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"one","namespace":"default"}})"),
       "is stored as example.com/v2, a version that its definition does not have"},
      {Value("ranges/servicenodeports", "bytes"),
       "cannot read the value of /registry/ranges/servicenodeports"},
  };
  for (const auto& [kv, problem] : cases) EXPECT_THAT(ProblemOf(kv), HasSubstr(problem));
  EXPECT_EQ(survey_.finding_count(), std::size(cases));
}

TEST_F(SurveyTest, FindingsAreCountedBeyondThoseThatAreKept) {
  for (size_t i = 0; i < Survey::kMaxFindings + 5; ++i) {
    survey_.Add(Value("gadgets/" + std::to_string(i), "{}"));
  }
  EXPECT_THAT(survey_.findings(), SizeIs(Survey::kMaxFindings));
  EXPECT_EQ(survey_.finding_count(), Survey::kMaxFindings + 5);
  EXPECT_THAT(survey_.forms(), IsEmpty());
}

}  // namespace
}  // namespace keelson::storage
