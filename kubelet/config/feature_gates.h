// Feature gates of Kubernetes 1.36 by name. This kubelet has the features as they are by default; gates are
// known so that configurations that name them are understood, and mistakes in them told.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

// kInvalid for a gate that is unknown, or locked to another value.
Result<> CheckFeatureGates(const std::map<std::string, bool>& gates);
// Whether a gate is on with these settings.
bool FeatureEnabled(const std::map<std::string, bool>& gates, std::string_view name);

struct FeatureState {
  std::string name, stage;  // ALPHA, BETA, DEPRECATED; "": generally available
  bool enabled = false;
};
// All of them, sorted by name.
std::vector<FeatureState> Features(const std::map<std::string, bool>& gates);

}  // namespace keelson::kubelet
