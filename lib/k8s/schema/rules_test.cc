#include "lib/k8s/schema/rules.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "lib/base/text.h"
#include "lib/k8s/schema/decl_types.h"
#include "lib/k8s/testing/schemas.h"
#include "lib/metrics/metrics.h"

namespace keelson::k8s {
namespace {

using testing::CompileSchema;
using testing::Lines;
using testing::Tree;

std::shared_ptr<const StructuralSchema> SchemaOfX(const std::string& schema) {
  return CompileSchema(R"({"type":"object","properties":{"x":)" + schema + "}}");
}

struct Case {
  const char* name;
  std::string schema;
  const char *object, *old, *errors;
};

std::string Numbers(const std::string& rules) {
  return R"({"type":"object","properties":{"min":{"type":"integer"},"max":{"type":"integer"},"s":{"type":"string"}},)"
         R"("x-kubernetes-validations":[)" +
         rules + "]}";
}

const Case kCases[] = {
    {"a rule that holds", Numbers(R"({"rule":"self.min <= self.max"})"), R"({"x":{"min":1,"max":2}})",
     nullptr, ""},
    {"a rule that does not", Numbers(R"({"rule":"self.min <= self.max"})"), R"({"x":{"min":3,"max":2}})",
     nullptr, "x: Invalid value: \"object\": failed rule: self.min <= self.max\n"},
    {"a message", Numbers(R"({"rule":"self.min <= self.max","message":" too small "})"),
     R"({"x":{"min":3,"max":2}})", nullptr, "x: Invalid value: \"object\": too small\n"},
    {"a message expression",
     Numbers(R"r({"rule":"self.min <= self.max","messageExpression":"'min is ' + string(self.min)"})r"),
     R"({"x":{"min":3,"max":2}})", nullptr, "x: Invalid value: \"object\": min is 3\n"},
    {"a message expression that fails",
     Numbers(R"({"rule":"self.min <= self.max","message":"m","messageExpression":"self.s"})"),
     R"({"x":{"min":3,"max":2}})", nullptr, "x: Invalid value: \"object\": m\n"},
    {"a reason and a place",
     Numbers(
         R"({"rule":"self.min <= self.max","message":"m","reason":"FieldValueForbidden","fieldPath":".min"})"),
     R"({"x":{"min":3,"max":2}})", nullptr, "x.min: Forbidden: m\n"},
    {"reason required", Numbers(R"({"rule":"false","message":"m","reason":"FieldValueRequired"})"),
     R"({"x":{}})", nullptr, "x: Required value: m\n"},
    {"reason duplicate", Numbers(R"({"rule":"false","message":"m","reason":"FieldValueDuplicate"})"),
     R"({"x":{}})", nullptr, "x: Duplicate value: \"object\"\n"},
    {"a failing evaluation", Numbers(R"({"rule":"self.min > 0"})"), R"({"x":{}})", nullptr,
     "x: Invalid value: \"object\": no such key: min evaluating rule: self.min > 0\n"},
    {"a null", R"({"type":"string","nullable":true,"x-kubernetes-validations":[{"rule":"false"}]})",
     R"({"x":null})", nullptr, ""},
    {"a transition rule on create", Numbers(R"({"rule":"self.min == oldSelf.min"})"), R"({"x":{"min":3}})",
     nullptr, ""},
    {"a transition rule", Numbers(R"({"rule":"self.min == oldSelf.min","message":"immutable"})"),
     R"({"x":{"min":3}})", R"({"x":{"min":2}})", "x: Invalid value: \"object\": immutable\n"},
    {"a transition rule about a new part", Numbers(R"({"rule":"self.min == oldSelf.min"})"),
     R"({"x":{"min":3}})", "{}", ""},
    {"an optional oldSelf on create",
     Numbers(R"({"rule":"oldSelf.hasValue() || self.min == 1","optionalOldSelf":true,"message":"m"})"),
     R"({"x":{"min":3}})", nullptr, "x: Invalid value: \"object\": m\n"},
    {"an optional oldSelf on update",
     Numbers(
         R"({"rule":"!oldSelf.hasValue() || oldSelf.value().min < self.min","optionalOldSelf":true,"message":"m"})"),
     R"({"x":{"min":3}})", R"({"x":{"min":4}})", "x: Invalid value: \"object\": m\n"},
    {"an unchanged part", Numbers(R"({"rule":"self.min == 1","message":"m"})"), R"({"x":{"min":3},"y":1})",
     R"({"x":{"min":3}})", ""},
    {"a changed part", Numbers(R"({"rule":"self.min == 1","message":"m"})"), R"({"x":{"min":3,"max":1}})",
     R"({"x":{"min":3}})", "x: Invalid value: \"object\": m\n"},
    {"items",
     R"({"type":"array","items":{"type":"string","x-kubernetes-validations":[{"rule":"self != 'a'","message":"m"}]}})",
     R"({"x":["b","a"]})", nullptr, "x[1]: Invalid value: \"string\": m\n"},
    {"values of maps",
     R"({"type":"object","additionalProperties":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1","message":"m"}]}})",
     R"({"x":{"a":2,"b":1}})", nullptr, "x[b]: Invalid value: \"integer\": m\n"},
    {"items of map lists",
     R"({"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.v >= oldSelf.v","message":"m"}]}})",
     R"({"x":[{"k":"b","v":1},{"k":"a","v":1}]})", R"({"x":[{"k":"a","v":2},{"k":"b","v":1}]})",
     "x[1]: Invalid value: \"object\": m\n"},
    {"an int or string",
     R"({"x-kubernetes-int-or-string":true,"x-kubernetes-validations":[{"rule":"type(self) == int ? self > 0 : self != ''","message":"m"}]})",
     R"({"x":0})", nullptr, "x: Invalid value: \"\": m\n"},
};

TEST(Rules, AreEvaluated) {
  for (const Case& one : kCases) {
    FieldErrors errors;
    boost::json::value old;
    if (one.old) old = Tree(one.old);
    ValidateRules(*SchemaOfX(one.schema), Tree(one.object), one.old ? &old : nullptr, errors);
    EXPECT_EQ(Lines(errors), one.errors) << one.name;
  }
}

// apiserver_cel_*: what compiles and what runs is counted.
TEST(Rules, AreMeasured) {
  const auto count = [](const std::string& name) {
    const std::string text = metrics::Print(), line = "\n" + name + "_count ";
    const size_t at = text.find(line);
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + line.size());
  };
  const std::string compiled = "apiserver_cel_compilation_duration_seconds",
                    evaluated = "apiserver_cel_evaluation_duration_seconds";
  const int before = count(compiled), ran = count(evaluated);
  const auto schema = SchemaOfX(Numbers(R"({"rule":"self.min > 0"},{"rule":"self.max > 0"})"));
  for (int i = 0; i < 3; ++i) {
    FieldErrors errors;
    ValidateRules(*schema, Tree(R"({"x":{"min":1,"max":1}})"), nullptr, errors, nullptr);
  }
  EXPECT_EQ(count(compiled), before + 2);
  EXPECT_EQ(count(evaluated), ran + 3);
}

TEST(Rules, SeeTheMetadataOfTheObject) {
  const auto schema = CompileSchema(
      R"({"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.name.startsWith('a') && self.kind == 'X'","message":"m"}]})");
  FieldErrors errors;
  ValidateRules(*schema, Tree(R"({"apiVersion":"x/v1","kind":"X","metadata":{"name":"ab"}})"), nullptr,
                errors);
  EXPECT_EQ(Lines(errors), "");
  ValidateRules(*schema, Tree(R"({"apiVersion":"x/v1","kind":"X","metadata":{"name":"b"}})"), nullptr,
                errors);
  EXPECT_EQ(Lines(errors), "<nil>: Invalid value: \"object\": m\n");
}

TEST(Rules, WarnAboutWhatDidNotChange) {
  const auto schema = SchemaOfX(Numbers(R"({"rule":"self.min == 1","message":"m"})"));
  const boost::json::value object = Tree(R"({"x":{"min":3}})");
  FieldErrors errors;
  std::vector<std::string> warnings;
  ValidateRules(*schema, object, &object, errors, &warnings);
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(Join(warnings, ";"), "x: Invalid value: \"object\": m");
}

TEST(Rules, WaitForObjectsThatAreValidOtherwise) {
  const auto schema = SchemaOfX(Numbers(R"({"rule":"false"})"));
  const boost::json::value object = Tree(R"({"x":{"min":"text"}})");
  FieldErrors errors = ValidateSchema(*schema, object);
  ValidateRules(*schema, object, nullptr, errors);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[1].ToString(),
            "<nil>: Invalid value: \"null\": some validation rules were not checked because the object was "
            "invalid; "
            "correct the existing errors to complete validation");
}

TEST(Rules, EndWithTheirBudget) {
  std::string object = R"({"x":[0)";
  for (int i = 0; i < 3000; ++i) object += ",0";
  object += "]}";
  const auto schema = SchemaOfX(
      R"r({"type":"array","items":{"type":"integer"},"x-kubernetes-validations":[{"rule":"self.all(a, self.all(b, a == b))"},{"rule":"false"}]})r");
  FieldErrors errors;
  ValidateRules(*schema, Tree(object), nullptr, errors);
  EXPECT_EQ(Lines(errors),
            "x: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further "
            "validation rules "
            "will be run due to call cost exceeds limit for rule: self.all(a, self.all(b, a == b))\n");
}

TEST(FieldPath, LeadsToAField) {
  const auto schema = CompileSchema(
      R"({"type":"object","properties":{"a":{"type":"object","properties":{"b-c":{"type":"string"}}},"m":{"type":"object","additionalProperties":{"type":"object","properties":{"d":{"type":"string"}}}},"l":{"type":"array","items":{"type":"string"}}}})");
  const std::pair<const char*, const char*> cases[] = {
      {".a", "a"},
      {".a['b-c']", "a.b-c"},
      {".m['k.x'].d", "m[k.x].d"},
      {".m.k", "m[k]"},
      {".missing", "error: does not refer to a valid field"},
      {"a", "error: expected [ or . but got: a"},
      {".", "error: unexpected end of JSON path"},
      {".l[0]", "error: expected single quoted string but got 0"},
      {".m['a'", "error: unexpected end of JSON path"},
      {".m['\\q']", "error: invalid string literal: invalid escape char \\q"},
  };
  for (const auto& [path, place] : cases) {
    const auto found = ResolveFieldPath(schema->nodes(), schema->nodes().root, path);
    EXPECT_EQ(found ? *found : "error: " + found.error().message(), place) << path;
  }
}

}  // namespace
}  // namespace keelson::k8s
