// Whole expressions: values, errors and messages.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/cel/env.h"
#include "lib/cel/values/json_view.h"

namespace keelson::cel {
namespace {

struct Case {
  const char* expression;
  const char* result;  // as ToText(), or the error's message
};

std::string Outcome(const EnvPtr& env, std::string_view expression) {
  auto program = env->Compile(expression);
  if (!program) return program.error().message();
  Arena arena;
  static const boost::json::value self = boost::json::parse(
      R"({"replicas": 3, "maxReplicas": 5, "names": ["a", "b"], "labels": {"x": "y"}, "nothing": null})");
  Activation activation(*env);
  if (env->VariableIndex("self") >= 0) activation.Set("self", JsonValue(self, nullptr, arena));
  auto value = (*program)->Evaluate(activation, arena);
  return value ? ToText(*value) : value.error().message();
}

TEST(Cel, Evaluates) {
  EnvOptions options;
  options.variables = {{"self", DeclType::Dyn()}};
  EnvPtr env = Env::Make(options);
  const Case cases[] = {
      {"1 + 2 * 3", "7"},
      {"-1 - -2", "1"},
      {"'a' + \"b\" + r'\\n'", "ab\\n"},
      {"self.replicas <= self.maxReplicas", "true"},
      {"self.missing == 1", "no such key: missing"},
      {"has(self.missing) || self.replicas == 3", "true"},
      {"self.missing == 1 || true", "true"},
      {"false && self.missing == 1", "false"},
      {"self.missing == 1 && false", "false"},
      {"1 / 0 == 1", "division by zero"},
      {"[1, 2, 3].all(x, x > 0)", "true"},
      {"[1, 2, 3].exists(x, x > 2)", "true"},
      {"[1, 2, 3].exists_one(x, x > 1)", "false"},
      {"size([1, 2, 3].map(x, x > 1, x * 2))", "2"},
      {"[1, 2, 3].filter(x, x != 2)[1]", "3"},
      {"[1, 2, 3].all(i, v, v == i + 1)", "true"},
      {"{'a': 1, 'b': 2}.transformMap(k, v, v + 1)['b']", "3"},
      {"[3, 1].transformMapEntry(i, v, {v: i})[1]", "1"},
      {"{'a': 1}['a']", "1"},
      {"{'a': 1}.a", "1"},
      {"[1][1]", "index out of bounds: 1"},
      {"type(1) == int", "true"},
      {"1 < 2u", "true"},
      {"1.5 > dyn(1)", "true"},
      {"self.names[0] in ['a', 'c']", "true"},
      {"self.labels.all(k, k == 'x')", "true"},
      {"duration('1h') + timestamp('2024-01-01T00:00:00Z')", "2024-01-01T01:00:00Z"},
      {"timestamp('2024-02-03T04:05:06Z').getMonth()", "1"},
      {"true ? 1 : 2", "1"},
      {"'abc'.matches('^a.c$')", "true"},
      {"9223372036854775807 + 1", "integer overflow"},
      {"b'\\xff' == b'\\377'", "true"},
      {"x", "ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x\n | ^"},
      {"1 + 'a'",
       "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | "
       "..^"},
      {"1 +",
       "ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', "
       "'true', 'false', "
       "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^"},
      {"[1, 'a']", "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^"},
  };
  for (const Case& c : cases) EXPECT_EQ(Outcome(env, c.expression), c.result) << c.expression;
}

TEST(Cel, FormatsAreCheckedBeforeTheyRun) {
  const EnvPtr env = Env::Make({});
  const auto error = [](const std::string& expression, size_t column, const std::string& text) {
    return fmt::format("ERROR: <input>:1:{}: {}\n | {}\n | {}^", column, text, expression,
                       std::string(column - 1, '.'));
  };
  struct Format {
    std::string expression;
    size_t column;
    std::string problem;
  };
  const Format cases[] = {
      {"'%d'.format(['a'])", 14,
       "error during formatting: decimal clause can only be used on integers, was given string"},
      {"'%x'.format([1.5])", 14,
       "error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given "
       "double"},
      {"'%s'.format([[optional.of(1)]])", 26,
       "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, "
       "maps, lists, types, durations, and timestamps, was given optional_type"},
      {"'%q'.format([1])", 12, "could not parse formatting clause: unrecognized formatting clause \"q\""},
      {"'%.f'.format([1.0])", 13,
       "could not parse formatting clause: error while parsing precision: error while converting precision "
       "to "
       "integer: strconv.Atoi: parsing \"\": invalid syntax"},
      {"'%d %d'.format([1])", 15, "index 1 out of range"},
      {"'%d'.format([1, 2])", 12, "too many arguments supplied to string.format (expected 1, got 2)"},
      {"'%'.format([1])", 11, "unexpected end of string"},
  };
  for (const Format& c : cases) {
    EXPECT_EQ(Outcome(env, c.expression), error(c.expression, c.column, c.problem));
  }
  EXPECT_EQ(Outcome(env, "'%s %d %%'.format([dyn('a'), dyn(1)])"), "a 1 %");
  EXPECT_EQ(Outcome(env, "'%f'.format(['NaN'])"), "NaN");
  // What is not known before is found out then.
  EXPECT_EQ(Outcome(env, "'%d'.format([dyn('a')])"),
            "error during formatting: decimal clause can only be used on integers, was given string");
  EXPECT_EQ(Outcome(env, "'%d'.format([1, 2].filter(x, false))"), "index 0 out of range");
  EnvOptions old;
  old.version = 28;
  EXPECT_TRUE(Env::Make(old)->Compile("duration('x') == duration('1s')"));
}

TEST(Cel, MutationsMakeObjectsOfAnyFields) {
  EnvOptions options;
  options.variables = {{"self", DeclType::Dyn()}};
  EnvPtr plain = Env::Make(options);
  options.json_patch = true;
  EnvPtr env = Env::Make(options);
  const auto json = [&](std::string_view expression) {
    auto program = env->Compile(expression);
    if (!program) return program.error().message();
    Arena arena;
    auto value = (*program)->Evaluate(Activation(*env), arena);
    if (!value) return value.error().message();
    auto out = ToJson(*value, arena);
    return out ? boost::json::serialize(*out) : out.error().message();
  };
  EXPECT_EQ(
      json("Object{spec: Object.spec{replicas: 1, ?none: optional.none()}, list: [Object.list{a: 'b'}]}"),
      R"({"spec":{"replicas":1},"list":[{"a":"b"}]})");
  EXPECT_EQ(json("Object{spec: 1}.spec + 1"), "2");
  EXPECT_EQ(json("Object.spec{} == Object.spec{}"), "true");
  EXPECT_EQ(json("jsonpatch.escapeKey('a/b~c')"), R"("a~1b~0c")");
  EXPECT_EQ(FormatType((*env->Compile("Object.spec{}"))->result_type()), "Object.spec");
  EXPECT_EQ(
      json("Objects{}"),
      "ERROR: <input>:1:8: undeclared reference to 'Objects' (in container '')\n | Objects{}\n | .......^");
  EXPECT_FALSE(plain->Compile("Object{}"));
}

}  // namespace
}  // namespace keelson::cel
