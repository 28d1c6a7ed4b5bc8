// Evaluates one metric of an autoscaler's spec: its current value and the replicas that it recommends.
#pragma once

#include <string>
#include <variant>

#include "controlplane/controllers/podautoscaler/metrics_client.h"
#include "controlplane/controllers/podautoscaler/replicas.h"
#include "lib/api/proto/autoscaling_v2.pb.h"

namespace keelson::controllers::podautoscaler {

namespace autoscalingv2 = api::autoscaling::v2;

struct Evaluation {
  int32_t replicas;
  std::string name;  // the metric's name in events
  autoscalingv2::MetricStatus status;
};

// `reason` and `why` go into the condition ScalingActive; `error` is the whole error.
struct EvaluationFailure {
  std::string reason, why, error;
  Code code;
};

// The target of an evaluation.
struct Subject {
  std::string ns;
  std::string selector;     // selects the target's pods
  int32_t status_replicas;  // status.replicas of the target
  const Look& look;
};

std::variant<Evaluation, EvaluationFailure> Evaluate(const autoscalingv2::MetricSpec& spec,
                                                     const Subject& subject, MetricsClient& metrics);

// Formats a *metav1.LabelSelector as Go prints it; `selector` may be null.
std::string GoText(const metav1::LabelSelector* selector);

}  // namespace keelson::controllers::podautoscaler
