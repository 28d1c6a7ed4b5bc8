// Compiling schemas; pruning, defaulting and coercing objects; lists that are sets or maps.
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "lib/base/text.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/structural_schema.h"
#include "lib/k8s/testing/schemas.h"

namespace keelson::k8s {
namespace {

using testing::CompileSchema;
using testing::Lines;
using testing::SchemaProps;
using testing::Tree;

TEST(Compile, StoresEqualPartsOnce) {
  const std::string part = R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}})";
  const auto one = CompileSchema(R"({"type":"object","properties":{"x":)" + part + "}}");
  const auto three = CompileSchema(R"({"type":"object","properties":{"x":)" + part + R"(,"y":)" + part +
                                   R"(,"z":)" + part + "}}");
  EXPECT_EQ(one->nodes().nodes.size(), 4u);
  EXPECT_EQ(three->nodes().nodes.size(), 4u);
  EXPECT_GT(three->bytes(), 0u);
}

TEST(Compile, RefusesWhatIsNotStructural) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"object","$ref":"#/x"})", "OpenAPIV3Schema '$ref' is not supported"},
      {R"({"type":"object","properties":{"a":{"id":"x"}}})", "OpenAPIV3Schema 'id' is not supported"},
      {R"({"type":"array","items":[{"type":"string"}]})",
       "OpenAPIV3Schema 'items' must be a schema, but is an array"},
      {R"({"type":"object","patternProperties":{"a":{"type":"string"}}})",
       "OpenAPIV3Schema 'patternProperties' is not supported"},
  };
  for (const auto& [json, message] : cases) {
    const auto compiled = StructuralSchema::Compile(SchemaProps(json));
    ASSERT_FALSE(compiled) << json;
    EXPECT_EQ(compiled.error().message(), message);
    EXPECT_EQ(compiled.error().code(), Code::kInvalid);
  }
  EXPECT_FALSE(
      StructuralSchema::Compile(SchemaProps(R"({"type":"object","properties":{"a":{"pattern":"("}}})")));
}

TEST(Compile, RefusesSchemasThatNestTooDeep) {
  api::apiextensions::v1::JSONSchemaProps props;
  auto* at = &props;
  for (int i = 0; i <= StructuralSchema::kMaxDepth; ++i) {
    at->set_type("array");
    at = at->mutable_items()->mutable_schema();
  }
  EXPECT_FALSE(StructuralSchema::Compile(props));
}

struct PruneCase {
  const char *name, *schema, *object, *pruned, *unknown;
};

const PruneCase kPruned[] = {
    {"known fields stay", R"({"type":"object","properties":{"a":{"type":"string"}}})", R"({"a":"x"})",
     R"({"a":"x"})", ""},
    {"unknown fields go, and the order stays",
     R"({"type":"object","properties":{"a":{"type":"string"},"c":{"type":"object"},"z":{"type":"string"}}})",
     R"({"z":1,"b":1,"a":2,"c":{"d":[1]},"y":{"x":1}})", R"({"z":1,"a":2,"c":{}})", "b c.d y"},
    {"metadata of the object stays", R"({"type":"object"})",
     R"({"apiVersion":"v1","kind":"X","metadata":{"foo":1}})",
     R"({"apiVersion":"v1","kind":"X","metadata":{"foo":1}})", ""},
    {"metadata elsewhere goes", R"({"type":"object","properties":{"a":{"type":"object"}}})",
     R"({"a":{"apiVersion":"v1","metadata":{}}})", R"({"a":{}})", "a.apiVersion a.metadata"},
    {"items of lists",
     R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}}})",
     R"({"l":[{"a":"x"},{"b":1}]})", R"({"l":[{"a":"x"},{}]})", "l[1].b"},
    {"additionalProperties with a schema",
     R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}}}})",
     R"({"m":{"k":{"a":"x","b":1}}})", R"({"m":{"k":{"a":"x"}}})", "m.k.b"},
    {"additionalProperties true keeps the members, and not what is in them",
     R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":true}}})",
     R"({"m":{"k":{"a":1},"l":1}})", R"({"m":{"k":{},"l":1}})", "m.k.a"},
    {"preserved",
     R"({"type":"object","properties":{"p":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object"}}}}})",
     R"({"p":{"x":{"y":1},"a":{"b":1}}})", R"({"p":{"x":{"y":1},"a":{}}})", "p.a.b"},
    {"preserved in lists",
     R"({"type":"object","properties":{"p":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object"}}}})",
     R"({"p":[{"x":1}]})", R"({"p":[{"x":1}]})", ""},
    {"preserved at the root", R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})",
     R"({"x":{"y":1}})", R"({"x":{"y":1}})", ""},
    {"embedded resources",
     R"({"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}})",
     R"({"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"a":1},"status":{}}})",
     R"({"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{}}})", "e.spec.a e.status"},
};

TEST(Prune, RemovesUnknownFields) {
  for (const PruneCase& one : kPruned) {
    boost::json::value object = Tree(one.object);
    const std::vector<std::string> unknown = PruneObject(*CompileSchema(one.schema), object);
    EXPECT_EQ(boost::json::serialize(object), one.pruned) << one.name;
    EXPECT_EQ(Join(unknown, " "), one.unknown) << one.name;
  }
}

struct ChangeCase {
  const char *name, *schema, *object, *changed;
};

const ChangeCase kNulls[] = {
    {"a null goes", R"({"type":"object","properties":{"a":{"type":"string"}}})", R"({"a":null})", "{}"},
    {"a nullable one stays", R"({"type":"object","properties":{"a":{"type":"string","nullable":true}}})",
     R"({"a":null})", R"({"a":null})"},
    {"one with a default stays", R"({"type":"object","properties":{"a":{"type":"string","default":"x"}}})",
     R"({"a":null})", R"({"a":null})"},
    {"an unknown one stays", R"({"type":"object"})", R"({"a":null})", R"({"a":null})"},
    {"in maps and lists",
     R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}},"l":{"type":"array","items":{"type":"string"}}}})",
     R"({"m":{"a":null,"b":"x"},"l":[null]})", R"({"m":{"b":"x"},"l":[null]})"},
};

TEST(Prune, RemovesNulls) {
  for (const ChangeCase& one : kNulls) {
    boost::json::value object = Tree(one.object);
    PruneNulls(*CompileSchema(one.schema), object);
    EXPECT_EQ(boost::json::serialize(object), one.changed) << one.name;
  }
}

const ChangeCase kDefaulted[] = {
    {"absent", R"({"type":"object","properties":{"a":{"type":"string","default":"x"}}})", "{}",
     R"({"a":"x"})"},
    {"present", R"({"type":"object","properties":{"a":{"type":"string","default":"x"}}})", R"({"a":"y"})",
     R"({"a":"y"})"},
    {"null", R"({"type":"object","properties":{"a":{"type":"string","default":"x"}}})", R"({"a":null})",
     R"({"a":"x"})"},
    {"nullable null",
     R"({"type":"object","properties":{"a":{"type":"string","default":"x","nullable":true}}})",
     R"({"a":null})", R"({"a":null})"},
    {"below an absent object",
     R"({"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string","default":"x"}}}}})",
     "{}", "{}"},
    {"below a default",
     R"({"type":"object","properties":{"a":{"type":"object","default":{},"properties":{"b":{"type":"string","default":"x"}}}}})",
     "{}", R"({"a":{"b":"x"}})"},
    {"in lists and maps",
     R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"b":{"type":"integer","default":1}}}},"m":{"type":"object","additionalProperties":{"type":"string","default":"d"}}}})",
     R"({"l":[{}],"m":{"k":null}})", R"({"l":[{"b":1}],"m":{"k":"d"}})"},
    {"unknown fields of a default are dropped",
     R"({"type":"object","properties":{"a":{"type":"object","default":{"b":1,"c":2},"properties":{"b":{"type":"integer"}}}}})",
     "{}", R"({"a":{"b":1}})"},
};

TEST(Default, FillsAbsentFields) {
  for (const ChangeCase& one : kDefaulted) {
    boost::json::value object = Tree(one.object);
    DefaultObject(*CompileSchema(one.schema), object);
    EXPECT_EQ(boost::json::serialize(object), one.changed) << one.name;
  }
}

constexpr char kEmbedded[] =
    R"({"type":"object","properties":{"spec":{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}})";

TEST(Coerce, ReportsUnknownFieldsInOrder) {
  boost::json::value object = Tree(
      R"({"metadata":{"name":"x","foo":1,"labels":{"a":"b"}},"zoo":1,"spec":{"b":1,"e":{"metadata":{"bar":1}}},"abc":1})");
  const auto unknown = CoerceObject(*CompileSchema(kEmbedded), object);
  ASSERT_TRUE(unknown) << unknown.error().message();
  EXPECT_EQ(Join(*unknown, "|"),
            "unknown field \"metadata.foo\"|unknown field \"abc\"|unknown field \"spec.b\"|unknown field "
            "\"zoo\"|unknown field \"spec.e.metadata.bar\"");
  EXPECT_EQ(boost::json::serialize(object),
            R"({"metadata":{"name":"x","labels":{"a":"b"}},"spec":{"e":{"metadata":{}}}})");
}

TEST(Coerce, MakesMetadataCanonical) {
  boost::json::value object = Tree(
      R"({"metadata":{"name":"x","creationTimestamp":null,"labels":{},"finalizers":[],"generation":0}})");
  ASSERT_TRUE(CoerceObject(*CompileSchema(kEmbedded), object));
  EXPECT_EQ(boost::json::serialize(object), R"({"metadata":{"name":"x"}})");
}

TEST(Coerce, RefusesOrDropsMetadataOfAWrongType) {
  constexpr char kObject[] = R"({"metadata":{"name":"x","labels":{"a":1}}})";
  boost::json::value object = Tree(kObject);
  const auto refused = CoerceObject(*CompileSchema(kEmbedded), object);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string");
  object = Tree(kObject);
  ASSERT_TRUE(CoerceObject(*CompileSchema(kEmbedded), object, {.drop_invalid_metadata = true}));
  EXPECT_EQ(boost::json::serialize(object), R"({"metadata":{"name":"x"}})");

  object = Tree(R"({"spec":{"e":{"kind":5}}})");
  const auto embedded = CoerceObject(*CompileSchema(kEmbedded), object);
  ASSERT_FALSE(embedded);
  EXPECT_EQ(embedded.error().message(), "spec.e.kind: Invalid value: 5: must be a string");
}

struct ListCase {
  const char *name, *schema, *object, *errors;
};

#define SET \
  R"({"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}})"
#define MAP \
  R"({"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"],"items":{"type":"object"}}}})"

const ListCase kLists[] = {
    {"a set", SET, R"({"l":["a","b"]})", ""},
    {"twice in a set", SET, R"({"l":["a","b","a","a"]})", "l[2]: Duplicate value: \"a\"\n"},
    {"1 and 1.0 differ", SET, R"({"l":[1,1.0,1]})", "l[2]: Duplicate value: 1\n"},
    {"a map", MAP, R"({"l":[{"a":1,"b":1},{"a":1,"b":2}]})", ""},
    {"keys twice", MAP, R"({"l":[{"b":1,"a":"x"},{"a":"x","b":1,"c":1}]})",
     "l[1]: Duplicate value: {\"a\":\"x\",\"b\":1}\n"},
    {"no keys twice", MAP, R"({"l":[{},null,{"c":1}]})", "l[1]: Duplicate value: {}\n"},
    {"no objects", MAP, R"({"l":["x"]})",
     "l[0]: Invalid value: \"x\": must be an object for an array of list-type map\n"},
    {"below a map of objects",
     R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}})",
     R"({"m":{"k":["a","a"]}})", "m[k][1]: Duplicate value: \"a\"\n"},
};

TEST(ListTypes, HoldNothingTwice) {
  for (const ListCase& one : kLists) {
    EXPECT_EQ(Lines(ValidateListTypes(*CompileSchema(one.schema), Tree(one.object))), one.errors) << one.name;
  }
}

TEST(ListTypes, AreNotHeldAgainstAnUpdateOfABrokenObject) {
  const auto schema = CompileSchema(SET);
  const boost::json::value broken = Tree(R"({"l":["a","a"]})"), good = Tree(R"({"l":["a"]})");
  EXPECT_TRUE(ValidateListTypes(*schema, broken, &broken).empty());
  EXPECT_FALSE(ValidateListTypes(*schema, broken, &good).empty());
}

}  // namespace
}  // namespace keelson::k8s
