#include "lib/k8s/schema/open_api.h"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

#include "lib/k8s/schema/go_print.h"
#include "lib/k8s/testing/schemas.h"

namespace keelson::k8s {
namespace {

using api::OpenApiVersion;

api::apiextensions::v1::CustomResourceDefinition Definition(std::string_view schema) {
  api::apiextensions::v1::CustomResourceDefinition definition;
  auto& spec = *definition.mutable_spec();
  spec.set_group("stable.example.com");
  spec.mutable_names()->set_kind("Foo");
  spec.mutable_names()->set_list_kind("FooList");
  spec.mutable_names()->set_plural("foos");
  auto& version = *spec.add_versions();
  version.set_name("v1");
  version.add_selectable_fields()->set_json_path(".spec.color");
  *version.mutable_schema()->mutable_open_apiv3_schema() = testing::SchemaProps(schema);
  return definition;
}

// The published schema of the property spec.
std::string Spec(const std::string& schema, OpenApiVersion version) {
  const auto published =
      PublishSchemas(Definition(R"({"type":"object","properties":{"spec":)" + schema + "}}"), "v1", version);
  return SortedJson(boost::json::parse(published.at(0).json).at("properties").at("spec"));
}

struct Case {
  const char *schema, *v2, *v3;
};

const Case kCases[] = {
    {R"({"type":"string","description":"Text","enum":["a"],"maxLength":3,"pattern":"^a$"})",
     R"({"description":"Text","enum":["a"],"maxLength":3,"pattern":"^a$","type":"string"})",
     R"({"description":"Text","enum":["a"],"maxLength":3,"pattern":"^a$","type":"string"})"},
    {R"({"type":"integer","minimum":1,"default":5,"anyOf":[{"maximum":5}],"not":{"minimum":9}})",
     R"({"minimum":1,"type":"integer"})",
     R"({"anyOf":[{"maximum":5}],"default":5,"minimum":1,"not":{"minimum":9},"type":"integer"})"},
    {R"({"type":"object","nullable":true,"properties":{"a":{"type":"string"}}})", "{}",
     R"({"nullable":true,"properties":{"a":{"type":"string"}},"type":"object"})"},
    {R"({"type":"object","required":["a","b"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"string"}}})",
     R"({"properties":{"a":{},"b":{"type":"string"}},"required":["b"],"type":"object"})",
     R"({"properties":{"a":{"nullable":true,"type":"string"},"b":{"type":"string"}},"required":["a","b"],"type":"object"})"},
    {R"({"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}})",
     R"({"x-kubernetes-preserve-unknown-fields":true})",
     R"({"properties":{"a":{"type":"string"}},"type":"object","x-kubernetes-preserve-unknown-fields":true})"},
    {R"({"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}})",
     R"({"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"set"})",
     R"({"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"set"})"},
    {R"({"type":"object","additionalProperties":{"type":"string"}})",
     R"({"additionalProperties":{"type":"string"},"type":"object"})",
     R"({"additionalProperties":{"type":"string"},"type":"object"})"},
    {R"({"x-kubernetes-int-or-string":true})", R"({"x-kubernetes-int-or-string":true})",
     R"({"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true})"},
    {R"({"type":"string","x-kubernetes-validations":[{"rule":"self != ''","message":"no"}]})",
     R"({"type":"string","x-kubernetes-validations":[{"message":"no","rule":"self != ''"}]})",
     R"({"type":"string","x-kubernetes-validations":[{"message":"no","rule":"self != ''"}]})"},
};

TEST(PublishSchemas, SaysWhatEachVersionOfOpenApiCan) {
  for (const Case& one : kCases) {
    EXPECT_EQ(Spec(one.schema, OpenApiVersion::kV2), one.v2);
    EXPECT_EQ(Spec(one.schema, OpenApiVersion::kV3), one.v3);
  }
}

TEST(PublishSchemas, AddsTheFieldsOfObjects) {
  const auto v3 =
      PublishSchemas(Definition(R"({"type":"object","description":"Foo CRD"})"), "v1", OpenApiVersion::kV3);
  ASSERT_EQ(v3.size(), 2u);
  EXPECT_EQ(v3[0].name, "com.example.stable.v1.Foo");
  EXPECT_EQ(v3[1].name, "com.example.stable.v1.FooList");
  EXPECT_EQ(
      v3[0].json,
      R"({"description":"Foo CRD","properties":{"apiVersion":{"description":"APIVersion defines the group and version of the schema that the object is written in.","type":"string"},)"
      R"("kind":{"description":"Kind is the name of the object's type in CamelCase; it cannot be changed.","type":"string"},)"
      R"("metadata":{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],"description":"Standard object's metadata: name, labels, annotations and more."}},)"
      R"("type":"object","x-kubernetes-group-version-kind":[{"group":"stable.example.com","kind":"Foo","version":"v1"}],)"
      R"("x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"}]})");
  const boost::json::value list = boost::json::parse(v3[1].json);
  EXPECT_EQ(SortedJson(list.at("properties").at("items").at("items")),
            R"({"$ref":"#/components/schemas/com.example.stable.v1.Foo"})");
  EXPECT_EQ(SortedJson(list.at("required")), R"(["items"])");

  const auto v2 = PublishSchemas(Definition(R"({"type":"object"})"), "v1", OpenApiVersion::kV2);
  EXPECT_EQ(SortedJson(boost::json::parse(v2.at(0).json).at("properties").at("metadata")),
            R"({"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",)"
            R"("description":"Standard object's metadata: name, labels, annotations and more."})");
}

TEST(PublishSchemas, LeavesOpenWhatKeepsUnknownFields) {
  const auto published =
      PublishSchemas(Definition(R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})"), "v1",
                     OpenApiVersion::kV2);
  EXPECT_EQ(
      published.at(0).json,
      R"({"type":"object","x-kubernetes-group-version-kind":[{"group":"stable.example.com","kind":"Foo","version":"v1"}],)"
      R"("x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"}]})");
  EXPECT_TRUE(PublishSchemas(Definition(R"({"type":"object"})"), "v2", OpenApiVersion::kV2).empty());
}

// One schema with everything that needs thought, in both versions.
TEST(PublishSchemas, Golden) {
  const std::string spec =
      R"({"type":"object","required":["port","template"],"properties":{)"
      R"("port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},)"
      R"("percent":{"x-kubernetes-int-or-string":true,"anyOf":[{"minimum":1}]},)"
      R"("template":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},)"
      R"("object":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}},)"
      R"("free":{"type":"object","nullable":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}},)"
      R"("list":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object"}},)"
      R"("labels":{"type":"object","additionalProperties":{"type":"string","nullable":true},"required":["a"]},)"
      R"("size":{"type":"object","default":{"count":2},"properties":{"count":{"type":"integer","format":"int32","default":1,"minimum":0}}}}})";
  const std::string embedded_meta =
      R"("apiVersion":{"description":"APIVersion defines the group and version of the schema that the object is written in.","type":"string"},)"
      R"("kind":{"description":"Kind is the name of the object's type in CamelCase; it cannot be changed.","type":"string"},"metadata":)";
  const std::string text =
      R"("description":"Standard object's metadata: name, labels, annotations and more.")";
  EXPECT_EQ(
      Spec(spec, OpenApiVersion::kV2),
      R"({"properties":{"free":{"x-kubernetes-preserve-unknown-fields":true},)"
      R"("labels":{"additionalProperties":{},"type":"object"},)"
      R"("list":{"x-kubernetes-preserve-unknown-fields":true},)"
      R"("object":{"properties":{)" +
          embedded_meta + R"({"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",)" +
          text +
          R"(},)"
          R"("spec":{"type":"object"}},"required":["kind","apiVersion"],"type":"object","x-kubernetes-embedded-resource":true},)"
          R"("percent":{"x-kubernetes-int-or-string":true},"port":{"x-kubernetes-int-or-string":true},)"
          R"("size":{"properties":{"count":{"format":"int32","minimum":0,"type":"integer"}},"type":"object"},)"
          R"("template":{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}},)"
          R"("required":["port","template"],"type":"object"})");
  const std::string reference =
      R"({"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],)" +
      text + "}";
  EXPECT_EQ(
      Spec(spec, OpenApiVersion::kV3),
      R"({"properties":{"free":{"nullable":true,"properties":{"a":{"type":"string"}},"type":"object","x-kubernetes-preserve-unknown-fields":true},)"
      R"("labels":{"additionalProperties":{"nullable":true,"type":"string"},"required":["a"],"type":"object"},)"
      R"("list":{"items":{"type":"object"},"type":"array","x-kubernetes-preserve-unknown-fields":true},)"
      R"("object":{"properties":{)" +
          embedded_meta + reference +
          R"(,"spec":{"type":"object"}},"required":["kind","apiVersion"],"type":"object","x-kubernetes-embedded-resource":true},)"
          R"("percent":{"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]}],"anyOf":[{"minimum":1}],"x-kubernetes-int-or-string":true},)"
          R"("port":{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true},)"
          R"("size":{"default":{"count":2},"properties":{"count":{"default":1,"format":"int32","minimum":0,"type":"integer"}},"type":"object"},)"
          R"("template":{"properties":{)" +
          embedded_meta + reference +
          R"(},"required":["kind","apiVersion"],"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}},)"
          R"("required":["port","template"],"type":"object"})");
}

TEST(PublishSchemas, DescribesEmbeddedObjects) {
  const std::string spec = Spec(
      R"({"type":"object","x-kubernetes-embedded-resource":true,"properties":{"a":{"type":"string"}},"required":["kind"]})",
      OpenApiVersion::kV3);
  const boost::json::value schema = boost::json::parse(spec);
  EXPECT_TRUE(schema.at("properties").as_object().contains("metadata"));
  EXPECT_EQ(SortedJson(schema.at("required")), R"(["kind","apiVersion"])");
}

}  // namespace
}  // namespace keelson::k8s
