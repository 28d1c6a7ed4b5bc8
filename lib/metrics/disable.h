// Metrics that an administrator has turned off, such as one that harms by its number of series (--disabled-metrics of
// Kubernetes' programs).
#pragma once

#include <string>
#include <vector>

namespace keelson::metrics {

// Leaves these families out of what Print() shows, from now on, whether they exist yet or not. disabled_metrics_total
// counts those that exist. Thread safe.
void Disable(const std::vector<std::string>& names);

}  // namespace keelson::metrics
