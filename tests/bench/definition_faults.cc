// Definitions that no server should take, objects that cost as much as they may, and a definition that comes and goes.
#include <utility>

#include <fmt/format.h>

#include "tests/bench/fault.h"
#include "tests/bench/load.h"

namespace keelson::bench {
namespace {

using std::chrono::milliseconds;

std::string Of(std::string_view spec) {
  return fmt::format("{{'type':'object','properties':{{'spec':{}}}}}", spec);
}

std::string Deep(int levels) {
  std::string out = "{'type':'string'}";
  for (int i = 0; i < levels; ++i) out = fmt::format("{{'type':'object','properties':{{'a':{}}}}}", out);
  return out;
}

std::string Fields(int count) {
  std::string out = "{'type':'object','properties':{";
  for (int i = 0; i < count; ++i) {
    out += fmt::format("{}'field{}':{{'type':'string','maxLength':64}}", i == 0 ? "" : ",", i);
  }
  return out + "}}";
}

std::string WithRule(const std::string& rule) {
  return fmt::format(
      "{{'type':'object','properties':{{'a':{{'type':'array','items':{{'type':'string'}}}}}},"
      "'x-kubernetes-validations':[{{'rule':'{}'}}]}}",
      rule);
}

Call TryDefinition(const std::string& schema) {
  return {"POST", std::string(kDefinitions) + "?dryRun=All", Json(FaultDefinition("tries", "Try", schema))};
}

// Refused, each in its turn.
Fault Hostile(std::string name, const std::vector<std::string>& schemas) {
  Fault fault;
  fault.name = std::move(name);
  // Made beforehand: clients elsewhere would not use this machine's processors for it.
  std::vector<Call> calls;
  for (const std::string& schema : schemas) calls.push_back(TryDefinition(schema));
  fault.faulty = [calls = std::move(calls)](int round) {
    // The rounds of a thread are kThreads apart.
    const int turn = round / Fault::kThreads + round % Fault::kThreads;
    return calls[static_cast<size_t>(turn) % calls.size()];
  };
  fault.sound = [call = TryDefinition(Of(Fields(40)))](int) { return call; };
  fault.period = milliseconds(50);
  return fault;
}

// Each object has a rule evaluated for each pair of 200 items: about what an estimate lets through.
Fault CostlyObjects() {
  constexpr char kItems[] = "{'type':'array','maxItems':200,'items':{'type':'string','maxLength':8}}";
  const std::string list = fmt::format("{{'type':'object','properties':{{'a':{}}}}}", kItems);
  const std::string rule = fmt::format(
      "{{'type':'object','properties':{{'a':{}}},'x-kubernetes-validations':[{{'rule':'self.a.all(x, "
      "self.a.all(y, x.size() < 9 && y.size() < 9))'}}]}}",
      kItems);
  std::string items;
  for (int i = 0; i < 200; ++i) items += fmt::format("{}'i{}'", i == 0 ? "" : ",", i);
  Fault fault;
  fault.name = "objects' rules cost what they may";
  fault.before = {{"POST", kDefinitions, FaultDefinition("ruleds", "Ruled", Of(rule))},
                  {"POST", kDefinitions, FaultDefinition("plains", "Plain", Of(list))}};
  fault.after = {{"DELETE", std::string(kDefinitions) + "/ruleds." + kFaultGroup, ""},
                 {"DELETE", std::string(kDefinitions) + "/plains." + kFaultGroup, ""}};
  fault.wait_for = FaultCollection("plains");
  auto create = [items](const char* plural, const char* kind, int round) {
    Call call = FaultObject(plural, kind, fmt::format("o{}", round), fmt::format("'a':[{}]", items));
    call.path += "?dryRun=All";
    return call;
  };
  fault.faulty = [create](int round) { return create("ruleds", "Ruled", round); };
  fault.sound = [create](int round) { return create("plains", "Plain", round); };
  fault.period = milliseconds(100);
  return fault;
}

// One thread deletes the definition, one makes it again with the other scope, and two write objects.
Fault ComesAndGoes() {
  Fault fault;
  fault.name = "a definition goes, changes its scope, and is written to";
  fault.before = {{"POST", kDefinitions, FaultDefinition("movers", "Mover")},
                  {"POST", kDefinitions, FaultDefinition("stayers", "Stayer")}};
  fault.after = {{"DELETE", std::string(kDefinitions) + "/stayers." + kFaultGroup, ""}};
  fault.wait_for = FaultCollection("stayers");
  fault.faulty = [](int round) -> Call {
    switch (round % Fault::kThreads) {
      case 0:
        return {"DELETE", std::string(kDefinitions) + "/movers." + kFaultGroup, ""};
      case 1:
        return {"POST", kDefinitions,
                FaultDefinition("movers", "Mover", "", "",
                                round / Fault::kThreads % 2 == 0 ? "Cluster" : "Namespaced")};
      default:
        return FaultObject("movers", "Mover", fmt::format("o{}", round), "'a':'b'");
    }
  };
  fault.sound = [](int round) {
    return FaultObject("stayers", "Stayer", fmt::format("o{}", round), "'a':'b'");
  };
  return fault;
}

}  // namespace

FaultGroup DefinitionFaults() {
  const std::string nested = std::string(5000, '(') + "true" + std::string(5000, ')');
  FaultGroup group;
  group.faults.push_back(Hostile(
      "hostile schemas",
      {Of(Deep(400)), Of("{'type':'string','pattern':'((a{1000}){1000}){1000}'}"), Of(Fields(20'000)),
       Of("{'$ref':'#/properties/spec'}"), Of("{'properties':{'a':{'anyOf':[{'type':'string'}]}}}")}));
  group.faults.push_back(Hostile(
      "hostile rules",
      {Of(WithRule("self.a.all(x, self.a.all(y, self.a.all(z, x == y && y == z)))")), Of(WithRule(nested)),
       Of(WithRule("self.a.size() < \\u0022" + std::string(1 << 20, 'x') + "\\u0022.size()"))}));
  group.faults.push_back(CostlyObjects());
  group.faults.push_back(ComesAndGoes());
  return group;
}

}  // namespace keelson::bench
