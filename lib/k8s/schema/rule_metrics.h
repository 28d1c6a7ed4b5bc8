// apiserver_cel_*: how long rules of custom resources take to compile and to evaluate.
#pragma once

#include <chrono>

namespace keelson::k8s {

// Programs that evaluate rules call this at start, so that the metrics are there before the first rule.
void RegisterRuleMetrics();

// One rule with its message.
void ObserveRuleCompilation(std::chrono::duration<double> took);
// All rules of one object.
void ObserveRuleEvaluation(std::chrono::duration<double> took);

}  // namespace keelson::k8s
