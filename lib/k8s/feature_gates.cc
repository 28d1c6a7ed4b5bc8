#include "lib/k8s/feature_gates.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/metrics/metrics.h"

namespace keelson::k8s {

namespace {

constexpr std::string_view kAllAlpha = "AllAlpha", kAllBeta = "AllBeta";

const FeatureGate* Find(std::string_view name) {
  const auto gates = AllFeatureGates();
  const auto it =
      std::lower_bound(gates.begin(), gates.end(), name,
                       [](const FeatureGate& gate, std::string_view key) { return gate.name < key; });
  return it != gates.end() && it->name == name ? &*it : nullptr;
}

bool Enabled(const FeatureGates& gates, const FeatureGate& gate) {
  if (auto it = gates.find(std::string(gate.name)); it != gates.end()) return it->second;
  if (gate.name == kAllAlpha || gate.name == kAllBeta) return gate.on;
  std::string_view all;
  if (gate.stage == FeatureStage::kAlpha) all = kAllAlpha;
  if (gate.stage == FeatureStage::kBeta) all = kAllBeta;
  if (auto it = gates.find(std::string(all)); it != gates.end()) return it->second;
  return gate.on;
}

const char* Text(bool value) { return value ? "true" : "false"; }

// The value of the label `stage` of kubernetes_feature_enabled.
const char* Label(FeatureStage stage) {
  switch (stage) {
    case FeatureStage::kAlpha:
      return "ALPHA";
    case FeatureStage::kBeta:
      return "BETA";
    case FeatureStage::kDeprecated:
      return "DEPRECATED";
    case FeatureStage::kGa:
      break;
  }
  return "";
}

constexpr std::string_view kBlank = " \t";

Result<> ParseOne(std::string_view setting, FeatureGates& gates) {
  constexpr std::string_view kTrue[] = {"1", "t", "T", "true", "TRUE", "True"};
  constexpr std::string_view kFalse[] = {"0", "f", "F", "false", "FALSE", "False"};
  const size_t equals = setting.find('=');
  std::string_view name = Trim(setting.substr(0, equals), kBlank);
  if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
    const std::string component(name.substr(0, colon));
    if (component != "kube") return Error(Code::kInvalid, "component not registered: " + component);
    name.remove_prefix(colon + 1);
  }
  const std::string key(name);
  if (equals == std::string_view::npos) return Error(Code::kInvalid, "missing bool value for " + key);
  const std::string value(Trim(setting.substr(equals + 1), kBlank));
  const bool on = std::find(std::begin(kTrue), std::end(kTrue), value) != std::end(kTrue);
  if (!on && std::find(std::begin(kFalse), std::end(kFalse), value) == std::end(kFalse)) {
    return Error(Code::kInvalid, "invalid value of " + key + "=" + value +
                                     ", err: strconv.ParseBool: parsing \"" + value + "\": invalid syntax");
  }
  gates[key] = on;
  return {};
}

// Several errors in upstream's form.
Result<> Aggregate(const std::vector<std::string>& problems) {
  if (problems.empty()) return {};
  std::string all;
  for (const std::string& problem : problems) all += (all.empty() ? "" : ", ") + problem;
  return Error(Code::kInvalid, problems.size() > 1 ? "[" + all + "]" : all);
}

}  // namespace

Result<> ParseFeatureGates(std::string_view text, FeatureGates& gates) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) KEELSON_RETURN_IF_ERROR(ParseOne(text.substr(begin, end - begin), gates));
    begin = end + 1;
  }
  return {};
}

Result<> CheckFeatureGates(const FeatureGates& gates) {
  std::vector<std::string> problems;
  for (const auto& [name, value] : gates) {
    const FeatureGate* gate = Find(name);
    if (!gate) return Error(Code::kInvalid, "unrecognized feature gate: " + name);
    if (gate->locked && gate->on != value) {
      problems.push_back("cannot set feature gate " + name + " to " + Text(value) +
                         ", feature is locked to " + Text(gate->on));
    }
  }
  if (!problems.empty()) return Aggregate(problems);
  std::map<std::string_view, std::string> missing;
  for (const FeatureDependency& one : FeatureDependencies()) {
    if (!FeatureEnabled(gates, one.gate) || FeatureEnabled(gates, one.needs)) continue;
    std::string& names = missing[one.gate];
    names += (names.empty() ? "" : " ") + std::string(one.needs);
  }
  for (const auto& [gate, names] : missing) {
    problems.push_back(std::string(gate) + " is enabled, but depends on features that are disabled: [" +
                       names + "]");
  }
  return Aggregate(problems);
}

bool FeatureEnabled(const FeatureGates& gates, std::string_view name) {
  const FeatureGate* gate = Find(name);
  return gate && Enabled(gates, *gate);
}

bool FeatureInEffect(const FeatureGates& gates, std::string_view name, Programs programs) {
  const FeatureGate* gate = Find(name);
  return gate && ((gate->honoured_by & programs) != 0 ? Enabled(gates, *gate) : gate->on);
}

std::vector<std::string> FeatureGateWarnings(const FeatureGates& gates, Programs programs) {
  std::vector<std::string> out;
  for (const auto& [name, value] : gates) {
    const FeatureGate* gate = Find(name);
    if (!gate || (gate->stage != FeatureStage::kGa && gate->stage != FeatureStage::kDeprecated)) continue;
    out.push_back(std::string("Setting ") + (gate->stage == FeatureStage::kGa ? "GA" : "deprecated") +
                  " feature gate " + name + "=" + Text(value) + ". It will be removed in a future release.");
  }
  std::string without;
  for (const FeatureGate& gate : AllFeatureGates()) {
    if (gate.name == kAllAlpha || gate.name == kAllBeta) continue;
    const bool on = Enabled(gates, gate);
    if (on == gate.on || (gate.honoured_by & programs) != 0) continue;
    without += (without.empty() ? "" : ",") + std::string(gate.name) + "=" + Text(on);
  }
  if (!without.empty()) {
    out.push_back("These feature gates have no effect in this program, which behaves as by default: " +
                  without);
  }
  return out;
}

void TellFeatureGates(const FeatureGates& gates, Programs programs) {
  for (const std::string& warning : FeatureGateWarnings(gates, programs)) log::Warn(warning);
  metrics::Family& enabled = metrics::Gauge(
      "kubernetes_feature_enabled",
      "This metric records the data about the stage and enablement of a k8s feature.", {"name", "stage"});
  for (const FeatureGate& gate : AllFeatureGates()) {
    enabled.With({std::string(gate.name), Label(gate.stage)}).Set(Enabled(gates, gate) ? 1 : 0);
  }
}

}  // namespace keelson::k8s
