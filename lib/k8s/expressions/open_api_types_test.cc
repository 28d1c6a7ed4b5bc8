// Types from OpenAPI documents, held against the documents of this server's own kinds and of custom resources.
#include "lib/k8s/expressions/open_api_types.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "lib/api/openapi/openapi.h"

namespace keelson::k8s {
namespace {

using cel::DeclForm;
using cel::DeclType;
using cel::DeclTypePtr;

DeclTypePtr TypeIn(const std::string& document, std::string_view group, std::string_view version,
                   const std::string& kind) {
  auto types = TypesInOpenApi(document, group, version, {kind});
  EXPECT_TRUE(types) << (types ? "" : types.error().message());
  return types ? types->at(0) : nullptr;
}

// The type at the end of fields; "*" is the item of a list or the value of a map. Null: there is no such field.
const DeclType* At(const DeclTypePtr& root, const std::vector<std::string>& path) {
  const DeclType* type = root.get();
  for (const std::string& step : path) {
    if (!type) return nullptr;
    if (step == "*") {
      type = type->element().get();
      continue;
    }
    const cel::DeclField* field = type->FindField(step);
    type = field ? field->type.get() : nullptr;
  }
  return type;
}

// A document with one kind Thing, whose schema has these members.
std::string Document(const std::string& members, const std::string& more = "") {
  return fmt::format(
      R"({{"components":{{"schemas":{{"com.example.v1.Thing":{{"type":"object",{},)"
      R"("x-kubernetes-group-version-kind":[{{"group":"example.com","version":"v1","kind":"Thing"}}]}}{}}}}}}})",
      members, more);
}

DeclTypePtr Thing(const std::string& members, const std::string& more = "") {
  return TypeIn(Document(members, more), "example.com", "v1", "Thing");
}

TEST(OpenApiTypes, BuiltInKinds) {
  const std::string apps = api::OpenApiV3Json("apis/apps/v1");
  const DeclTypePtr deployment = TypeIn(apps, "apps", "v1", "Deployment");
  ASSERT_TRUE(deployment);
  struct Case {
    std::vector<std::string> path;
    DeclForm form;
    const char* name;
  };
  const Case cases[] = {
      {{"kind"}, DeclForm::kString, ""},
      {{"metadata", "creationTimestamp"}, DeclForm::kDateTime, ""},
      {{"metadata", "labels", "*"}, DeclForm::kString, ""},
      {{"metadata", "__namespace__"}, DeclForm::kString, ""},
      {{"spec", "replicas"}, DeclForm::kInt, ""},
      {{"spec", "strategy", "rollingUpdate", "maxSurge"}, DeclForm::kIntOrString, ""},
      {{"spec", "template"}, DeclForm::kObject, "Deployment.spec.template"},
      {{"spec", "template", "spec", "containers", "*"},
       DeclForm::kObject,
       "Deployment.spec.template.spec.containers.@idx"},
      {{"spec", "template", "spec", "containers", "*", "ports", "*", "hostPort"}, DeclForm::kInt, ""},
  };
  for (const Case& c : cases) {
    const DeclType* type = At(deployment, c.path);
    ASSERT_TRUE(type) << c.path.back();
    EXPECT_EQ(type->form(), c.form) << c.path.back();
    if (c.form == DeclForm::kObject) {
      EXPECT_EQ(type->name(), c.name) << c.path.back();
    }
  }
  EXPECT_FALSE(At(deployment, {"spec", "replica"}));
  EXPECT_FALSE(TypeIn(apps, "apps", "v1", "Pod"));
  EXPECT_FALSE(TypeIn(apps, "apps", "v2", "Deployment"));
}

// Schemas of definitions contain themselves.
TEST(OpenApiTypes, CirclesEnd) {
  const DeclTypePtr definition = TypeIn(api::OpenApiV3Json("apis/apiextensions.k8s.io/v1"),
                                        "apiextensions.k8s.io", "v1", "CustomResourceDefinition");
  ASSERT_TRUE(definition);
  const DeclType* below =
      At(definition, {"spec", "versions", "*", "schema", "openAPIV3Schema", "properties", "*"});
  ASSERT_TRUE(below);
  EXPECT_EQ(below->form(), DeclForm::kObject);
  EXPECT_TRUE(below->fields().empty());
}

TEST(OpenApiTypes, FormsOfValues) {
  const DeclTypePtr thing = Thing(R"("properties":{
      "kind":{"type":"string"},"apiVersion":{"type":"string"},"metadata":{"type":"object"},
      "bytes":{"type":"string","format":"byte"},"day":{"type":"string","format":"date"},
      "wait":{"type":"string","format":"duration"},"yes":{"type":"boolean"},"share":{"type":"number"},
      "either":{"x-kubernetes-int-or-string":true},
      "inner":{"type":"object","x-kubernetes-embedded-resource":true},
      "list":{"type":"array","items":{"type":"integer"}},
      "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
      "any":{"x-kubernetes-preserve-unknown-fields":true},"anys":{"type":"array","items":{}},
      "1st":{"type":"string"}})");
  ASSERT_TRUE(thing);
  const std::pair<const char*, DeclForm> forms[] = {
      {"bytes", DeclForm::kBytes},     {"day", DeclForm::kDate},     {"wait", DeclForm::kDuration},
      {"yes", DeclForm::kBool},        {"share", DeclForm::kDouble}, {"either", DeclForm::kIntOrString},
      {"inner", DeclForm::kObject},    {"list", DeclForm::kList},    {"free", DeclForm::kObject},
      {"metadata", DeclForm::kObject},
  };
  for (const auto& [name, form] : forms) {
    const DeclType* type = At(thing, {name});
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(type->form(), form) << name;
  }
  for (const char* name : {"any", "anys", "1st"}) EXPECT_FALSE(At(thing, {name})) << name;
  EXPECT_EQ(At(thing, {"inner", "metadata", "generateName"})->form(), DeclForm::kString);
  EXPECT_FALSE(At(thing, {"metadata", "labels"}));
}

TEST(OpenApiTypes, WhatCannotBeTold) {
  EXPECT_FALSE(Thing(R"("properties":{"spec":{"$ref":"#/components/schemas/missing"}})"));
  EXPECT_FALSE(Thing(R"("properties":{"spec":{"$ref":"elsewhere.json"}})"));
  auto broken = TypesInOpenApi("{", "example.com", "v1", {"Thing"});
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().Is(Code::kInvalid));
  for (const char* text : {"{}", "[]", R"({"components":[]})", R"({"components":{"schemas":{"a":1}}})"}) {
    EXPECT_FALSE(TypeIn(text, "example.com", "v1", "Thing")) << text;
  }
}

// A server's document must not take all memory: each of these schemas refers to the next one twice.
TEST(OpenApiTypes, GrowthIsBounded) {
  std::string more;
  for (int i = 0; i < 60; ++i) {
    more += fmt::format(
        R"(,"s{0}":{{"type":"object","properties":{{"a":{{"$ref":"#/components/schemas/s{1}"}},"b":{{"$ref":"#/components/schemas/s{1}"}}}}}})",
        i, i + 1);
  }
  more += R"(,"s60":{"type":"string"})";
  EXPECT_FALSE(Thing(R"("properties":{"spec":{"$ref":"#/components/schemas/s0"}})", more));
  EXPECT_TRUE(Thing(R"("properties":{"spec":{"$ref":"#/components/schemas/s52"}})", more));
}

}  // namespace
}  // namespace keelson::k8s
