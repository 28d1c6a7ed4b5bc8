// Feature gates of Kubernetes 1.36, in one table for all programs, so that --feature-gates means the same
// to each. The table also says which programs honour a gate. Every other program behaves as by default and
// logs at start that it ignores the setting.
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
  Programs honoured_by = 0;  // other programs ignore the setting
};
// `gate` cannot be on without `needs`.
struct FeatureDependency {
  std::string_view gate, needs;
};

// Sorted by name; includes AllAlpha and AllBeta.
std::span<const FeatureGate> AllFeatureGates();
std::span<const FeatureDependency> FeatureDependencies();

// The gates that are set, by name.
using FeatureGates = std::map<std::string, bool>;

// Parses a flag's text, "A=true,B=false", into `gates`. "kube:A=true" is the same as "A=true". kInvalid, in
// upstream's words, for malformed text. Does not check whether the gates exist.
Result<> ParseFeatureGates(std::string_view text, FeatureGates& gates);
// kInvalid, in upstream's words, for a gate that is unknown or removed, is locked to another value, or is
// on without a gate that it needs.
Result<> CheckFeatureGates(const FeatureGates& gates);
// Whether a gate is on with these settings, AllAlpha and AllBeta included. `name` must be in the table.
bool FeatureEnabled(const FeatureGates& gates, std::string_view name);

// The same for one of these programs: where none of them honours the gate, its default.
bool FeatureInEffect(const FeatureGates& gates, std::string_view name, Programs programs);

// Messages to log at start: upstream's warnings about gates that will be removed, and one line with all
// settings that these programs ignore.
std::vector<std::string> FeatureGateWarnings(const FeatureGates& gates, Programs programs);
// Logs the warnings and sets kubernetes_feature_enabled. Call once, at start.
void TellFeatureGates(const FeatureGates& gates, Programs programs);

}  // namespace keelson::k8s
