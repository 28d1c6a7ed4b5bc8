// What the API server does for every created custom resource, by a schema of 300 fields.
#include <cstdlib>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/k8s/schema/rules.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {
namespace {

namespace json = boost::json;

constexpr int kParts = 30;

// 30 objects of ten fields: text with lengths, patterns and formats, numbers with limits, lists and maps. Each has
// different limits, so that nothing is shared.
std::string SchemaText() {
  std::string parts;
  for (int i = 0; i < kParts; ++i) {
    parts += fmt::format(
        R"({}"part{}":{{"type":"object","required":["name"],"properties":{{)"
        R"("name":{{"type":"string","maxLength":{},"description":"A name."}},"image":{{"type":"string","pattern":"^[a-z0-9.:/-]+$"}},)"
        R"("mode":{{"type":"string","enum":["Fast","Slow"],"default":"Fast"}},"replicas":{{"type":"integer","minimum":0}},)"
        R"("ratio":{{"type":"number","maximum":1}},"on":{{"type":"boolean"}},"port":{{"x-kubernetes-int-or-string":true}},)"
        R"("at":{{"type":"string","format":"date-time"}},"args":{{"type":"array","items":{{"type":"string"}},"maxItems":10}},)"
        R"("labels":{{"type":"object","additionalProperties":{{"type":"string"}}}}}}}})",
        i ? "," : "", i, 60 + i);
  }
  return R"({"type":"object","properties":{"spec":{"type":"object","properties":{)" + parts + "}}}}";
}

std::string ObjectText() {
  std::string parts;
  for (int i = 0; i < kParts; ++i) {
    parts += fmt::format(
        R"({}"part{}":{{"name":"web-{}","image":"registry.example.com/web:1.2","mode":"Slow","replicas":3,"ratio":0.5,"on":true,)"
        R"("port":"http","at":"2026-01-01T00:00:00Z","args":["--a","--b"],"labels":{{"app":"web"}}}})",
        i ? "," : "", i, i);
  }
  return R"({"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"foo","namespace":"default","labels":{"a":"b"}},"spec":{)" +
         parts + "}}";
}

api::apiextensions::v1::JSONSchemaProps Props(const std::string& text) {
  api::apiextensions::v1::JSONSchemaProps props;
  if (!api::DecodeJson(text, props)) std::abort();
  return props;
}

std::shared_ptr<const StructuralSchema> Schema() {
  auto schema = StructuralSchema::Compile(Props(SchemaText()));
  if (!schema) std::abort();
  return *schema;
}

void BM_CompileSchema(benchmark::State& state) {
  const auto props = Props(SchemaText());
  size_t bytes = 0;
  for (auto _ : state) bytes = (*StructuralSchema::Compile(props))->bytes();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_CompileSchema);

void BM_ValidateCustomObject(benchmark::State& state) {
  const auto schema = Schema();
  const json::value object = json::parse(ObjectText());
  if (!ValidateSchema(*schema, object).empty()) std::abort();
  for (auto _ : state) benchmark::DoNotOptimize(ValidateSchema(*schema, object));
}
BENCHMARK(BM_ValidateCustomObject);

void BM_ValidateCustomObjectUpdate(benchmark::State& state) {
  const auto schema = Schema();
  const json::value object = json::parse(ObjectText());
  for (auto _ : state) benchmark::DoNotOptimize(ValidateSchema(*schema, object, &object));
}
BENCHMARK(BM_ValidateCustomObjectUpdate);

void BM_CoerceAndDefaultCustomObject(benchmark::State& state) {
  const auto schema = Schema();
  json::value object = json::parse(ObjectText());
  for (auto _ : state) {
    if (!CoerceObject(*schema, object)) std::abort();
    DefaultObject(*schema, object);
  }
}
BENCHMARK(BM_CoerceAndDefaultCustomObject);

void BM_EvaluateRule(benchmark::State& state) {
  const auto schema = StructuralSchema::Compile(Props(
      R"({"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer"},)"
      R"("maxReplicas":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.replicas <= self.maxReplicas"}]}}})"));
  if (!schema) std::abort();
  const json::value object = json::parse(R"({"spec":{"replicas":3,"maxReplicas":5}})");
  for (auto _ : state) {
    FieldErrors errors;
    ValidateRules(**schema, object, nullptr, errors);
    if (!errors.empty()) std::abort();
  }
}
BENCHMARK(BM_EvaluateRule);

}  // namespace
}  // namespace keelson::k8s
