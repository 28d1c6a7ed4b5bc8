#include "controlplane/apiextensions/custom_resource.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <boost/json/parse.hpp>

#include "controlplane/apiextensions/custom_objects.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"

namespace keelson::apiextensions {
namespace {

using CRD = apiextensionsv1::CustomResourceDefinition;

std::shared_ptr<const Definition> Define(const std::string& scope = "Namespaced", int64_t revision = 1) {
  auto crd = std::make_shared<CRD>();
  const std::string text = R"({
    "metadata": {"name": "foos.example.com"},
    "spec": {"group": "example.com", "scope": ")" +
                           scope + R"(",
      "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
      "versions": [
        {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
         "selectableFields": [{"jsonPath": ".spec.size"}],
         "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
           "size": {"type": "integer", "default": 3}, "name": {"type": "string"}}}}}}},
        {"name": "v2", "served": false, "storage": false,
         "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    "status": {"conditions": [{"type": "NamesAccepted", "status": "True"}]}})";
  EXPECT_TRUE(api::DecodeJson(text, *crd));
  return std::make_shared<const Definition>(*crd, revision, [crd] { return crd; });
}

TEST(Definitions, DeprecatedVersionsNameTheNewestOne) {
  struct Case {
    const char *deprecated, *others;  // served versions, those with a minus are deprecated too
    const char* warning;
  };
  for (const Case& one :
       {Case{"v1alpha1", "v1beta1 v1 v1beta2", "; use example.com/v1 Foo"},
        Case{"v1alpha1", "v1beta1 -v1", "; use example.com/v1beta1 Foo"},
        Case{"v1beta1", "v1beta10 v1beta2", "; use example.com/v1beta10 Foo"}, Case{"v2", "v1 v2beta1", ""},
        Case{"v1", "foo v01 v1beta0", ""}, Case{"foo", "v1alpha1", "; use example.com/v1alpha1 Foo"},
        Case{"foo", "zoo bar", "; use example.com/bar Foo"}}) {
    CRD crd = *Define()->Load();
    crd.mutable_spec()->clear_versions();
    auto add = [&](std::string name, bool deprecated) {
      auto& version = *crd.mutable_spec()->add_versions();
      version.set_name(std::move(name));
      version.set_served(true);
      version.set_deprecated(deprecated);
    };
    add(one.deprecated, true);
    std::istringstream others(one.others);
    for (std::string name; others >> name;) {
      const bool deprecated = name.starts_with('-');
      add(deprecated ? name.substr(1) : name, deprecated);
    }
    const Definition definition(crd, 1, nullptr);
    EXPECT_EQ(definition.Find(one.deprecated)->deprecation_warning,
              std::string("example.com/") + one.deprecated + " Foo is deprecated" + one.warning);
  }
}

TEST(CustomResources, RowsKeepTheirAddress) {
  CustomResources table;
  CustomResource& foos = table.Update(Define());
  const CustomRow& row = foos.Row("v1");
  EXPECT_EQ(row.GroupResource(), "foos.example.com");
  EXPECT_EQ(row.etcd_prefix, "/registry/example.com/foos/");
  EXPECT_TRUE(row.IsCustom());
  EXPECT_EQ(CustomOf(row), &row);
  EXPECT_EQ(CustomOf(api::ResourceOf<CRD>()), nullptr);
  const CustomRow& status = foos.Row("v1", "status");
  EXPECT_EQ(status.resource, "foos/status");
  EXPECT_EQ(status.main, &row);
  EXPECT_EQ(foos.Row("v1", "scale").kind, "Scale");
  // A later revision, and the same definition after a deletion, are the same resource.
  EXPECT_EQ(&table.Update(Define("Namespaced", 2)), &foos);
  EXPECT_EQ(foos.definition()->revision, 2);
  table.Remove("foos.example.com");
  EXPECT_EQ(table.Find("foos.example.com"), nullptr);
  EXPECT_EQ(foos.definition(), nullptr);
  EXPECT_EQ(foos.VersionOf(row), nullptr);
  EXPECT_EQ(&table.Update(Define()).Row("v1"), &row);
  // Another scope is another resource.
  CustomResource& wide = table.Update(Define("Cluster"));
  EXPECT_NE(&wide, &foos);
  EXPECT_EQ(foos.definition(), nullptr);
}

TEST(CustomResources, AreServedOnceTheirNamesAreAccepted) {
  std::shared_ptr<const Definition> definition = Define();
  EXPECT_TRUE(definition->served);
  EXPECT_FALSE(definition->established);
  EXPECT_EQ(definition->StorageVersion().name, "v1");
  EXPECT_FALSE(definition->Find("v2")->served);
  EXPECT_EQ(definition->Find("v3"), nullptr);
  EXPECT_THAT(definition->Find("v1")->selectable_fields, testing::ElementsAre("spec.size"));
  EXPECT_EQ(definition->Find("v1")->Columns().size(), 1u);  // the age
}

TEST(CustomObjects, FollowTheSchema) {
  CustomResources table;
  CustomResource& foos = table.Update(Define());
  const CustomRow& row = foos.Row("v1");
  std::unique_ptr<Message> object = api::NewObject(row.descriptor());
  ASSERT_TRUE(api::DecodeJson(R"({"metadata":{"name":"a"},"spec":{"name":"x","more":1}})", *object));
  auto unknown = Coerce(row, *object);
  ASSERT_TRUE(unknown) << unknown.error().message();
  EXPECT_THAT(*unknown, testing::ElementsAre(R"(unknown field "spec.more")"));
  EXPECT_EQ(api::CanonicalJson(*api::ContentOf(*object)), R"({"spec":{"name":"x","size":3}})");
  EXPECT_EQ(SelectableValue(*object, "spec.size"), "3");
  EXPECT_EQ(SelectableValue(*object, "spec.none.at"), "");
  EXPECT_TRUE(Validate(row, *object, nullptr, false).empty());
  ASSERT_TRUE(api::DecodeJson(R"({"metadata":{"name":"a"},"spec":{"size":"big"}})", *object));
  k8s::FieldErrors errors = Validate(row, *object, nullptr, false);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].field, "spec.size");
  EXPECT_TRUE(Validate(row, *object, nullptr, true).empty());  // outside of status
}

TEST(CustomObjects, ContentFollowsTheSchemaByItself) {
  CustomResources table;
  const CustomRow& row = table.Update(Define()).Row("v1");
  std::unique_ptr<Message> object = api::NewObject(row.descriptor());
  ASSERT_TRUE(
      api::DecodeJson(R"({"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"name":"x"}})", *object));
  const std::string metadata = api::Meta(*object).SerializeAsString();
  auto unknown = CoerceContent(
      row, boost::json::parse(R"({"spec":{"size":4,"more":1},"other":{}})").as_object(), *object);
  ASSERT_TRUE(unknown) << unknown.error().message();
  EXPECT_THAT(*unknown, testing::ElementsAre(R"(unknown field "other")", R"(unknown field "spec.more")"));
  EXPECT_EQ(api::ContentText(*object), R"({"spec":{"size":4}})");
  EXPECT_EQ(api::Meta(*object).SerializeAsString(), metadata);
}

TEST(CustomObjects, AreReadInTheVersionThatTheyWereStoredIn) {
  CustomResources table;
  const CustomRow& row = table.Update(Define()).Row("v1");
  const CustomRow* stored = nullptr;
  auto read = ReadStored(
      row, R"({"apiVersion":"example.com/v2","kind":"Foo","metadata":{"name":"a"},"spec":{"more":1}})",
      stored);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(stored->version, "v2");
  EXPECT_EQ(api::Meta(**read).name(), "a");
  std::unique_ptr<Message> relabeled = Relabel(row, **read);
  EXPECT_EQ(api::CanonicalJson(*api::ContentOf(*relabeled)), R"({"spec":{"size":3}})");
  for (const char* bad : {"", "[]", "{}", R"({"apiVersion":"example.com/v1","kind":"Bar"})",
                          R"({"apiVersion":"example.org/v1","kind":"Foo"})"}) {
    EXPECT_FALSE(ReadStored(row, bad, stored)) << bad;
  }
}

TEST(CustomObjects, AreReadWithoutMetadataOfAWrongType) {
  CustomResources table;
  const CustomRow& row = table.Update(Define()).Row("v1");
  const CustomRow* stored = nullptr;
  auto read = ReadStored(
      row, R"({"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"a","labels":{"b":"c"},
      "finalizers":"none"},"spec":{"name":"x","more":1}})",
      stored);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(api::EncodeJson(api::Meta(**read)), R"({"name":"a","labels":{"b":"c"}})");
  EXPECT_EQ(api::ContentText(**read), R"({"spec":{"name":"x","size":3}})");
  EXPECT_FALSE(ReadStored(row, R"({"apiVersion":"example.com/v1","kind":"Foo","metadata":"none"})", stored));
}

}  // namespace
}  // namespace keelson::apiextensions
