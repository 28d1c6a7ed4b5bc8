// CEL: parsing, checking, planning and evaluating an expression over an object.
#include <boost/json/parse.hpp>

#include "lib/cel/env.h"
#include "lib/cel/syntax/escaping.h"
#include "lib/cel/values/json_view.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

const boost::json::value& Self() {
  static const boost::json::value self = boost::json::parse(
      R"({"replicas": 3, "name": "web", "ratio": 0.5, "on": true, "items": [{"key": "a"}, {"key": "b"}], "labels": {"x": "y"}, "none": null})");
  return self;
}

const cel::DeclTypePtr& SelfType() {
  using cel::DeclType;
  static const cel::DeclTypePtr type = [] {
    auto item = DeclType::Object("self.items", {{"key", "key", DeclType::String(), true, false}});
    return DeclType::Object("self", {{"replicas", "replicas", DeclType::Int(), true, false},
                                     {"name", "name", DeclType::String({63, {}}), true, false},
                                     {"ratio", "ratio", DeclType::Double(), false, false},
                                     {"on", "on", DeclType::Bool(), false, false},
                                     {"items", "items", DeclType::List(item, 10), false, false},
                                     {"labels", "labels", DeclType::Map(DeclType::String()), false, false}});
  }();
  return type;
}

std::string Outcome(const cel::Env& env, const cel::Program& program, uint64_t& cost) {
  cel::Arena arena;
  cel::Activation activation(env);
  activation.Set("self", cel::JsonValue(Self(), SelfType().get(), arena));
  activation.Set("any", cel::JsonValue(Self(), nullptr, arena));
  cel::RunLimits limits;
  limits.cost = 20'000;
  auto value = program.Evaluate(activation, arena, limits, &cost);
  return value ? cel::ToText(*value) : value.error().message();
}

void Cel(std::string_view text) {
  static const cel::EnvPtr env = [] {
    cel::EnvOptions options;
    options.version = cel::kStoredExpressions;
    options.variables = {{"self", SelfType()}, {"any", cel::DeclType::Dyn()}};
    options.json_patch = options.device_includes = options.bind = options.escaped_identifiers = true;
    return cel::Env::Make(options);
  }();
  auto program = env->Compile(text);
  if (!program) {
    FUZZ_CHECK(program.error().message().starts_with("ERROR: <input>:"), program.error().message());
    return;
  }
  FUZZ_CHECK((*program)->estimate().min <= (*program)->estimate().max, text);
  uint64_t cost = 0, again = 0;
  std::string outcome = Outcome(*env, **program, cost);
  FUZZ_CHECK(Outcome(*env, **program, again) == outcome && again == cost, text);
}

void FieldName(std::string_view text) {
  auto escaped = cel::EscapeFieldName(text);
  if (!escaped) return;
  auto back = cel::UnescapeFieldName(*escaped);
  FUZZ_CHECK(back && *back == text, *escaped);
}

const Registration kCel("cel", Cel), kFieldName("cel_field_name", FieldName);

}  // namespace
}  // namespace keelson::fuzz
