// One metric of an autoscaler's spec: its value now, and the replicas that it asks for.
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
  std::string name;  // as events call the metric
  autoscalingv2::MetricStatus status;
};

// What the condition ScalingActive says (`reason`, `why`), and the same in the words of the whole.
struct EvaluationFailure {
  std::string reason, why, error;
  Code code;
};

// What a metric is evaluated for.
struct Subject {
  std::string ns;
  std::string selector;     // of the target's pods
  int32_t status_replicas;  // of the target
  const Look& look;
};

std::variant<Evaluation, EvaluationFailure> Evaluate(const autoscalingv2::MetricSpec& spec,
                                                     const Subject& subject, MetricsClient& metrics);

// As Go prints a *metav1.LabelSelector; `selector` may be null.
std::string GoText(const metav1::LabelSelector* selector);

}  // namespace keelson::controllers::podautoscaler
