#include "controlplane/storage/versions/definition_conversion.h"

#include <gtest/gtest.h>

#include "controlplane/storage/convert.h"
#include "controlplane/storage/object.h"
#include "controlplane/storage/versions/stored_versions.h"
#include "lib/api/codec/codec.h"
#include "lib/api/types.h"

namespace keelson::storage {
namespace {

const api::ResourceInfo& Definitions() {
  return api::ResourceOf<apiextensionsv1::CustomResourceDefinition>();
}

// A stored definition's spec as v1 has it, in JSON, and the stored versions of its status.
std::string Read(const std::string& value) {
  const auto object = Object::FromStored(Definitions(), "things.example.com", 7, value);
  if (!object) return object.error().message();
  const auto message = (*object)->Decode();
  const auto& definition = static_cast<const apiextensionsv1::CustomResourceDefinition&>(*message);
  std::string out = api::EncodeJson(definition.spec());
  for (const std::string& version : definition.status().stored_versions()) out += " " + version;
  return out;
}

constexpr char kHead[] =
    R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"things.example.com"},)";
constexpr char kNames[] = R"({"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"})";

// What all versions share stands in the spec.
TEST(DefinitionConversion, WhatAllVersionsShareGoesToEach) {
  const std::string names = kNames;
  EXPECT_EQ(
      Read(
          std::string(kHead) + R"("spec":{"group":"example.com","version":"v2","names":)" + names +
          R"(,"scope":"Cluster","validation":{"openAPIV3Schema":{"type":"object","properties":{"size":{"type":"number","default":1.50}}}},)"
          R"("subresources":{"status":{}},"versions":[{"name":"v2","served":true,"storage":true},)"
          R"({"name":"v1","served":false,"storage":false,"deprecated":true,"deprecationWarning":"old"}],)"
          R"("additionalPrinterColumns":[{"name":"Size","type":"number","priority":1,"JSONPath":".size"}],)"
          R"("conversion":{"strategy":"None"},"preserveUnknownFields":false,"selectableFields":[{"jsonPath":".size"}]},)"
          R"("status":{"conditions":[],"acceptedNames":)" +
          names + R"(,"storedVersions":["v1","v2"]}})"),
      R"({"group":"example.com","names":)" + names +
          R"(,"scope":"Cluster","versions":[{"name":"v2","served":true,"storage":true,)"
          R"("schema":{"openAPIV3Schema":{"type":"object","properties":{"size":{"type":"number","default":1.50}}}},"subresources":{"status":{}},)"
          R"("additionalPrinterColumns":[{"name":"Size","type":"number","priority":1,"jsonPath":".size"}],"selectableFields":[{"jsonPath":".size"}]},)"
          R"({"name":"v1","served":false,"storage":false,"deprecated":true,"deprecationWarning":"old",)"
          R"("schema":{"openAPIV3Schema":{"type":"object","properties":{"size":{"type":"number","default":1.50}}}},"subresources":{"status":{}},)"
          R"("additionalPrinterColumns":[{"name":"Size","type":"number","priority":1,"jsonPath":".size"}],"selectableFields":[{"jsonPath":".size"}]}],)"
          R"("conversion":{"strategy":"None"}} v1 v2)");
}

TEST(DefinitionConversion, EachVersionKeepsWhatIsItsOwn) {
  const std::string names = kNames;
  EXPECT_EQ(
      Read(
          std::string(kHead) + R"("spec":{"group":"example.com","version":"v1","names":)" + names +
          R"(,"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},)"
          R"("additionalPrinterColumns":[{"name":"A","type":"string","JSONPath":".a"}]},)"
          R"({"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","description":"two"}},)"
          R"("subresources":{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}}}],)"
          R"("conversion":{"strategy":"Webhook","webhookClientConfig":{"service":{"namespace":"ns","name":"hook"}},)"
          R"("conversionReviewVersions":["v1","v1beta1"]},"preserveUnknownFields":false}})"),
      R"({"group":"example.com","names":)" + names +
          R"(,"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},)"
          R"("additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a"}]},)"
          R"({"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"description":"two","type":"object"}},)"
          R"("subresources":{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}}}],)"
          R"("conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"ns","name":"hook","port":443}},)"
          R"("conversionReviewVersions":["v1","v1beta1"]}}} v1)");
}

// As servers before 1.11 stored them.
TEST(DefinitionConversion, OldDefinitionsGetTheDefaultsOfTheirVersion) {
  EXPECT_EQ(
      Read(
          std::string(kHead) +
          R"("spec":{"group":"example.com","version":"v1","names":{"plural":"things","kind":"Thing"},"conversion":{"strategy":"Webhook"}}})"),
      R"({"group":"example.com","names":)" + std::string(kNames) +
          R"(,"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true}],)"
          R"("conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1beta1"]}},"preserveUnknownFields":true} v1)");
}

struct Case {
  const char *group, *resource, *kind;  // the row
  const char* api_version;              // of the stored value
  enum { kReadable, kReadableUnknown, kUnreadable } outcome;
};

TEST(StoredVersions, OfTheReleases) {
  const Case cases[] = {
      {"apps", "deployments", "Deployment", "apps/v1", Case::kReadable},
      {"autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "autoscaling/v1",
       Case::kReadable},
      {"autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "autoscaling/v2beta1",
       Case::kUnreadable},
      {"", "events", "Event", "events.k8s.io/v1", Case::kReadable},
      {"resource.k8s.io", "resourceclaims", "ResourceClaim", "resource.k8s.io/v1beta2", Case::kReadable},
      {"resource.k8s.io", "resourceslices", "ResourceSlice", "resource.k8s.io/v1beta1", Case::kUnreadable},
      {"storage.k8s.io", "volumeattributesclasses", "VolumeAttributesClass", "storage.k8s.io/v1beta1",
       Case::kReadable},
      {"admissionregistration.k8s.io", "mutatingadmissionpolicies", "MutatingAdmissionPolicy",
       "admissionregistration.k8s.io/v1beta1", Case::kReadable},
      {"apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition",
       "apiextensions.k8s.io/v1beta1", Case::kReadable},
      {"networking.k8s.io", "ingresses", "Ingress", "extensions/v1beta1", Case::kUnreadable},
      {"policy", "poddisruptionbudgets", "PodDisruptionBudget", "policy/v1beta1", Case::kReadableUnknown},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.api_version);
    const api::ResourceInfo* row = nullptr;
    for (const api::ResourceInfo& info : api::Resources()) {
      if (info.group == one.group && info.resource == one.resource && &StoredAs(info) == &info) row = &info;
    }
    ASSERT_NE(row, nullptr);
    const auto found = FindStoredVersion(*row, {one.api_version, one.kind});
    ASSERT_EQ(found.has_value(), one.outcome != Case::kUnreadable);
    if (!found) continue;
    EXPECT_EQ(found->known, one.outcome == Case::kReadable);
    const auto object =
        Object::FromStored(*row, "a/b", 7,
                           std::string(R"({"kind":")") + one.kind + R"(","apiVersion":")" + one.api_version +
                               R"(","metadata":{"name":"b","namespace":"a"}})");
    EXPECT_TRUE(object) << object.error().message();
  }
}

// In versions that a kube-apiserver one release older knows.
TEST(StoredVersions, AreThoseOfUpstream) {
  for (const api::ResourceInfo& row : api::Resources()) {
    if (row.etcd_prefix.empty() || &StoredAs(row) != &row) continue;
    const bool younger =
        row.resource == "mutatingadmissionpolicies" || row.resource == "mutatingadmissionpolicybindings";
    EXPECT_EQ(WrittenGvk(row).version, younger ? "v1beta1" : row.version) << row.resource;
    const auto again = FindStoredVersion(row, {WrittenGvk(row).ApiVersion(), std::string(row.kind)});
    EXPECT_TRUE(again && again->known) << row.resource;
  }
}

}  // namespace
}  // namespace keelson::storage
