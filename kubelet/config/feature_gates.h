// Feature gates of Kubernetes 1.36 by name. This kubelet has the features as they are by default; gates are
// known so that configurations that name them are understood, and mistakes in them told.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::kubelet {

// kInvalid for a gate that is unknown, or locked to another value.
Result<> CheckFeatureGates(const std::map<std::string, bool>& gates);
// Whether a gate is on with these settings.
bool FeatureEnabled(const std::map<std::string, bool>& gates, std::string_view name);

}  // namespace keelson::kubelet
