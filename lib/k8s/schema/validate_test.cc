#include <gtest/gtest.h>

#include "lib/k8s/schema/structural_schema.h"
#include "lib/k8s/testing/schemas.h"

namespace keelson::k8s {
namespace {

using testing::CompileSchema;
using testing::Lines;
using testing::Tree;

struct Case {
  // `schema` is of the member "x" of `object`.
  const char *schema, *object, *errors;
};

std::shared_ptr<const StructuralSchema> SchemaOfX(const std::string& schema) {
  return CompileSchema(R"({"type":"object","properties":{"x":)" + schema + "}}");
}

const Case kTypes[] = {
    {R"({"type":"integer"})", R"({"x":1})", ""},
    {R"({"type":"integer"})", R"({"x":1.0})", ""},
    {R"({"type":"integer"})", R"({"x":"1"})",
     "x: Invalid value: \"string\": x in body must be of type integer: \"string\"\n"},
    {R"({"type":"integer"})", R"({"x":1.5})",
     "x: Invalid value: \"number\": x in body must be of type integer: \"number\"\n"},
    {R"({"type":"number"})", R"({"x":1})", ""},
    {R"({"type":"number"})", R"({"x":true})",
     "x: Invalid value: \"boolean\": x in body must be of type number: \"boolean\"\n"},
    {R"({"type":"string"})", R"({"x":null})",
     "x: Invalid value: \"null\": x in body must be of type string: \"null\"\n"},
    {R"({"type":"string","nullable":true})", R"({"x":null})", ""},
    {R"({"type":"object"})", R"({"x":[]})",
     "x: Invalid value: \"array\": x in body must be of type object: \"array\"\n"},
    {R"({"type":"array","items":{"type":"string"}})", R"({"x":["a",1,{}]})",
     "x[1]: Invalid value: \"integer\": x[1] in body must be of type string: \"integer\"\n"
     "x[2]: Invalid value: \"object\": x[2] in body must be of type string: \"object\"\n"},
    {R"({"type":"boolean"})", R"({"x":"true"})",
     "x: Invalid value: \"string\": x in body must be of type boolean: \"string\"\n"},
    {R"({"x-kubernetes-int-or-string":true})", R"({"x":"1"})", ""},
    {R"({"x-kubernetes-int-or-string":true})", R"({"x":1})", ""},
    {R"({"x-kubernetes-int-or-string":true})", R"({"x":true})",
     "x: Invalid value: \"boolean\": x in body must be of type integer,string: \"boolean\"\n"},
    {R"({"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]})", R"({"x":1})",
     ""},
    {R"({"type":"string","format":"date-time"})", R"({"x":"2014-12-15T19:30:20Z"})", ""},
    {R"({"type":"string","format":"date-time"})", R"({"x":"now"})",
     "x: Invalid value: \"now\": x in body must be of type date-time: \"now\"\n"},
    {R"({"type":"string","format":"date-time"})", R"({"x":1})",
     "x: Invalid value: \"int64\": x in body must be of type date-time: \"int64\"\n"},
    {R"({"type":"integer","format":"int32"})", R"({"x":1})", ""},
    {R"({"type":"string","format":"made-up"})", R"({"x":1})",
     "x: Invalid value: \"integer\": x in body must be of type string: \"integer\"\n"},
    {R"({"x-kubernetes-preserve-unknown-fields":true})", R"({"x":[1,"a"]})", ""},
};

const Case kValues[] = {
    {R"({"type":"string","enum":["a","b"]})", R"({"x":"a"})", ""},
    {R"({"type":"string","enum":["a","b"]})", R"({"x":"c"})",
     "x: Unsupported value: \"c\": supported values: \"a\", \"b\"\n"},
    {R"({"type":"integer","enum":[1,2]})", R"({"x":3})",
     "x: Unsupported value: 3: supported values: \"1\", \"2\"\n"},
    {R"({"type":"string","maxLength":3})", R"({"x":"äöü"})", ""},
    {R"({"type":"string","maxLength":3})", R"({"x":"abcd"})", "x: Too long: may not be more than 3 bytes\n"},
    {R"({"type":"string","minLength":3})", R"({"x":"a"})",
     "x: Invalid value: \"a\": x in body should be at least 3 chars long\n"},
    {R"({"type":"string","pattern":"^a+$"})", R"({"x":"aa"})", ""},
    {R"({"type":"string","pattern":"^a+$"})", R"({"x":"ab"})",
     "x: Invalid value: \"ab\": x in body should match '^a+$'\n"},
    {R"({"type":"integer","minimum":2})", R"({"x":1})",
     "x: Invalid value: 1: x in body should be greater than or equal to 2\n"},
    {R"({"type":"integer","minimum":2,"exclusiveMinimum":true})", R"({"x":2})",
     "x: Invalid value: 2: x in body should be greater than 2\n"},
    {R"({"type":"number","maximum":2.5})", R"({"x":2.75})",
     "x: Invalid value: 2.75: x in body should be less than or equal to 2.5\n"},
    {R"({"type":"number","maximum":2.5,"exclusiveMaximum":true})", R"({"x":2.5})",
     "x: Invalid value: 2.5: x in body should be less than 2.5\n"},
    {R"({"type":"integer","multipleOf":3})", R"({"x":6})", ""},
    {R"({"type":"integer","multipleOf":3})", R"({"x":7})",
     "x: Invalid value: 7: x in body should be a multiple of 3\n"},
    {R"({"type":"number","multipleOf":0.01})", R"({"x":0.07})", ""},
    {R"({"type":"number","multipleOf":0.5})", R"({"x":0.7})",
     "x: Invalid value: 0.7: x in body should be a multiple of 0.5\n"},
    {R"({"type":"array","items":{"type":"string"},"minItems":1})", R"({"x":[]})",
     "x: Invalid value: 0: x in body should have at least 1 items\n"},
    {R"({"type":"array","items":{"type":"string"},"maxItems":1})", R"({"x":["a","b"]})",
     "x: Too many: 2: must have at most 1 item\n"},
    {R"({"type":"object","minProperties":1})", R"({"x":{}})",
     "x: Invalid value: 0: x in body should have at least 1 properties\n"},
    {R"({"type":"object","maxProperties":2})", R"({"x":{"a":1,"b":1,"c":1}})",
     "x: Too many: 3: must have at most 2 items\n"},
    {R"({"type":"object","additionalProperties":false})", R"({"x":{"a":1}})",
     "x: Invalid value: \"a\": x.a in body is a forbidden property\n"},
    {R"({"type":"object","additionalProperties":{"type":"string"}})", R"({"x":{"a":1}})",
     "x.a: Invalid value: \"integer\": x.a in body must be of type string: \"integer\"\n"},
    {R"({"type":"object","required":["a","b"]})", R"({"x":{"b":1}})", "x.a: Required value\n"},
};

const Case kBranches[] = {
    {R"({"type":"integer","anyOf":[{"minimum":5},{"maximum":2}]})", R"({"x":1})", ""},
    {R"({"type":"integer","anyOf":[{"minimum":5},{"maximum":2}]})", R"({"x":3})",
     "<nil>: Invalid value: \"\": \"x\" must validate at least one schema (anyOf)\n"
     "x: Invalid value: 3: x in body should be greater than or equal to 5\n"},
    {R"({"type":"integer","oneOf":[{"minimum":1},{"minimum":5}]})", R"({"x":6})",
     "<nil>: Invalid value: \"\": \"x\" must validate one and only one schema (oneOf). Found 2 valid "
     "alternatives\n"},
    {R"({"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]})", R"({"x":{}})",
     "<nil>: Invalid value: \"\": \"x\" must validate one and only one schema (oneOf). Found none valid\n"
     "x.a: Required value\n"},
    {R"({"type":"integer","allOf":[{"minimum":1},{"maximum":5}]})", R"({"x":6})",
     "x: Invalid value: 6: x in body should be less than or equal to 5\n"
     "<nil>: Invalid value: \"\": \"x\" must validate all the schemas (allOf)\n"},
    {R"({"type":"integer","allOf":[{"minimum":9}]})", R"({"x":6})",
     "x: Invalid value: 6: x in body should be greater than or equal to 9\n"
     "<nil>: Invalid value: \"\": \"x\" must validate all the schemas (allOf). None validated\n"},
    {R"({"type":"integer","not":{"minimum":5}})", R"({"x":6})",
     "<nil>: Invalid value: \"\": \"x\" must not validate the schema (not)\n"},
    {R"({"type":"integer","not":{"minimum":5}})", R"({"x":4})", ""},
};

void Check(const Case& one) {
  EXPECT_EQ(Lines(ValidateSchema(*SchemaOfX(one.schema), Tree(one.object))), one.errors)
      << one.schema << " " << one.object;
}

TEST(Validate, ChecksTypes) {
  for (const Case& one : kTypes) Check(one);
}
TEST(Validate, ChecksValues) {
  for (const Case& one : kValues) Check(one);
}
TEST(Validate, ChecksAlternatives) {
  for (const Case& one : kBranches) Check(one);
}

TEST(Validate, NamesTheObjectItself) {
  const auto schema = CompileSchema(R"({"type":"object","required":["spec"],"minProperties":1})");
  EXPECT_EQ(Lines(ValidateSchema(*schema, Tree(R"({"a":1})"))), "spec: Required value\n");
  EXPECT_EQ(Lines(ValidateSchema(*schema, Tree("{}"))),
            "<nil>: Invalid value: 0:  in body should have at least 1 properties\n");
}

TEST(Validate, TellsWrongTypesApart) {
  const FieldErrors errors = ValidateSchema(*SchemaOfX(R"({"type":"integer"})"), Tree(R"({"x":"1"})"));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(CauseReason(errors[0].type), "FieldValueTypeInvalid");
}

TEST(Validate, EndsWithAHostileObject) {
  std::string object = R"({"x":[0)";
  for (int i = 0; i < 100'000; ++i) object += ",0";
  object += "]}";
  const auto schema = SchemaOfX(R"({"type":"array","items":{"type":"string"}})");
  EXPECT_LE(ValidateSchema(*schema, Tree(object)).size(), 1000u);
}

struct UpdateCase {
  const char *name, *schema, *old, *now, *errors;
};

#define NARROW R"({"type":"object","properties":{"a":{"type":"string","maxLength":1},"b":{"type":"string"}}})"
#define MAP_LIST                                                                                  \
  R"({"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":)" \
  R"({"type":"object","properties":{"k":{"type":"string"},"v":{"type":"string","maxLength":1},"w":{"type":"string"}}}})"

const UpdateCase kUpdates[] = {
    {"an unchanged member", NARROW, R"({"x":{"a":"long"}})", R"({"x":{"a":"long","b":"new"}})", ""},
    {"a changed member", NARROW, R"({"x":{"a":"long"}})", R"({"x":{"a":"longer"}})",
     "x.a: Too long: may not be more than 1 byte\n"},
    {"a new member", NARROW, R"({"x":{}})", R"({"x":{"a":"long"}})",
     "x.a: Too long: may not be more than 1 byte\n"},
    {"an item with the same key", MAP_LIST, R"({"x":[{"k":"1","v":"long"}]})",
     R"({"x":[{"k":"0"},{"k":"1","v":"long","w":"new"}]})", ""},
    {"an item with another key", MAP_LIST, R"({"x":[{"k":"1","v":"long"}]})",
     R"({"x":[{"k":"2","v":"long"}]})", "x[0].v: Too long: may not be more than 1 byte\n"},
    {"an item of an atomic list", R"({"type":"array","items":{"type":"string","maxLength":1}})",
     R"({"x":["long"]})", R"({"x":["long","a"]})", "x[0]: Too long: may not be more than 1 byte\n"},
    {"a whole atomic list", R"({"type":"array","items":{"type":"string","maxLength":1}})",
     R"({"x":["long"]})", R"({"x":["long"],"y":1})", ""},
    {"a rule about an unchanged object",
     R"({"type":"object","required":["a"],"properties":{"a":{"type":"string"}}})", R"({"x":{}})",
     R"({"x":{},"y":1})", ""},
    {"a rule about a changed object",
     R"({"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}})",
     R"({"x":{}})", R"({"x":{"b":"1"}})", "x.a: Required value\n"},
    {"a member of alternatives",
     R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"properties":{"a":{"maxLength":1}}}]})",
     R"({"x":{"a":"long"}})", R"({"x":{"a":"long","b":"new"}})", ""},
};

TEST(Validate, RatchetsUpdates) {
  for (const UpdateCase& one : kUpdates) {
    const boost::json::value old = Tree(one.old), now = Tree(one.now);
    const auto schema = SchemaOfX(one.schema);
    EXPECT_EQ(Lines(ValidateSchema(*schema, now, &old)), one.errors) << one.name;
    // Without the old object, the rules hold.
    EXPECT_FALSE(ValidateSchema(*schema, now).empty()) << one.name;
  }
}

}  // namespace
}  // namespace keelson::k8s
