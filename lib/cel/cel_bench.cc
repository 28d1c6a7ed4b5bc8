// Speed of compiling and evaluating expressions as custom resources have them.
#include <benchmark/benchmark.h>

#include <boost/json/parse.hpp>

#include "lib/cel/env.h"
#include "lib/cel/values/json_view.h"

namespace keelson::cel {
namespace {

DeclTypePtr SelfType() {
  return DeclType::Object(
      "self", {{"replicas", "replicas", DeclType::Int(), true, false},
               {"maxReplicas", "maxReplicas", DeclType::Int(), true, false},
               {"hosts", "hosts", DeclType::List(DeclType::String({253, {}}), 100), false, false}});
}

EnvPtr MakeEnv(const DeclTypePtr& self) {
  EnvOptions options;
  options.variables = {{"self", self}};
  return Env::Make(options);
}

const char* const kRules[] = {
    "self.replicas <= self.maxReplicas",
    "self.hosts.all(h, h.endsWith('.example.com'))",
    "has(self.hosts) && self.hosts.exists_one(h, h.matches('^www[.]'))",
};

void Compile(benchmark::State& state) {
  EnvPtr env = MakeEnv(SelfType());
  const char* rule = kRules[state.range(0)];
  for (auto _ : state) benchmark::DoNotOptimize(env->Compile(rule));
  state.SetLabel(rule);
}

void Evaluate(benchmark::State& state) {
  DeclTypePtr type = SelfType();
  EnvPtr env = MakeEnv(type);
  const char* rule = kRules[state.range(0)];
  auto program = *env->Compile(rule);
  auto json = boost::json::parse(
      R"({"replicas": 3, "maxReplicas": 5, "hosts": ["www.example.com", "a.example.com", "b.example.com"]})");
  int self = env->VariableIndex("self");
  for (auto _ : state) {
    Arena arena;
    Activation activation(*env);
    activation.Set(self, JsonValue(json, type.get(), arena));
    benchmark::DoNotOptimize(program->Evaluate(activation, arena));
  }
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(rule);
}

BENCHMARK(Compile)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);
BENCHMARK(Evaluate)->DenseRange(0, 2)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace keelson::cel
