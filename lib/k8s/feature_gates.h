// Feature gates of Kubernetes 1.36, one table for all programs, so that --feature-gates means the same to
// each. Programs behave as by default. What a setting does is in the table too: a program either follows a
// gate, or says at start that it does not.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::k8s {

enum class FeatureStage : uint8_t { kAlpha, kBeta, kGa, kDeprecated };

// Bits; a process may be several programs.
using Programs = uint8_t;
namespace Program {
inline constexpr Programs kApiServer = 1, kControllers = 2, kScheduler = 4, kKubelet = 8, kProxy = 16;
}  // namespace Program

struct FeatureGate {
  std::string_view name;
  FeatureStage stage = FeatureStage::kAlpha;
  bool on = false;           // by default
  bool locked = false;       // to the default
  Programs honoured_by = 0;  // the others behave as by default, whatever is set
};
struct FeatureDependency {
  std::string_view gate, needs;
};

// Sorted by name; with AllAlpha and AllBeta.
std::span<const FeatureGate> AllFeatureGates();
std::span<const FeatureDependency> FeatureDependencies();

// What is set, by name.
using FeatureGates = std::map<std::string, bool>;

// Adds the settings of a flag's text, "A=true,B=false", to `gates`. "kube:A=true" is the same as "A=true".
// kInvalid in upstream's words. Names are not looked up.
Result<> ParseFeatureGates(std::string_view text, FeatureGates& gates);
// kInvalid, in upstream's words, for a gate that is unknown or gone, locked to another value, or on without
// one that it needs.
Result<> CheckFeatureGates(const FeatureGates& gates);
// Whether a gate is on with these settings, AllAlpha and AllBeta among them. The gate is one of the table.
bool FeatureEnabled(const FeatureGates& gates, std::string_view name);

// What to say about these settings at start: upstream's warnings of gates that will go, and one line with all
// settings that change nothing in these programs.
std::vector<std::string> FeatureGateWarnings(const FeatureGates& gates, Programs programs);
// Logs the warnings, and sets kubernetes_feature_enabled. Once, at start.
void TellFeatureGates(const FeatureGates& gates, Programs programs);

}  // namespace keelson::k8s
