// HorizontalPodAutoscalers, in both served versions.
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/k8s/defaulting/table.h"

namespace keelson::k8s {

namespace autoscalingv2 = api::autoscaling::v2;

namespace {

constexpr int32_t kCpuPercent = 80;

void DefaultV1(autoscalingv1::HorizontalPodAutoscaler& object) {
  autoscalingv1::HorizontalPodAutoscalerSpec& spec = *object.mutable_spec();
  if (!spec.has_min_replicas()) spec.set_min_replicas(1);
  // Other metrics are in an annotation.
  const bool has_metrics =
      object.metadata().annotations().contains("autoscaling.alpha.kubernetes.io/metrics");
  if (!has_metrics && !spec.has_target_cpu_utilization_percentage()) {
    spec.set_target_cpu_utilization_percentage(kCpuPercent);
  }
}

void AddPolicy(autoscalingv2::HPAScalingRules& rules, std::string_view type, int32_t value) {
  autoscalingv2::HPAScalingPolicy& policy = *rules.add_policies();
  policy.set_type(std::string(type));
  policy.set_value(value);
  policy.set_period_seconds(15);
}

void DefaultBehavior(autoscalingv2::HorizontalPodAutoscalerBehavior& behavior) {
  autoscalingv2::HPAScalingRules& up = *behavior.mutable_scale_up();
  if (!up.has_stabilization_window_seconds()) up.set_stabilization_window_seconds(0);
  if (!up.has_select_policy()) up.set_select_policy("Max");
  if (up.policies().empty()) {
    AddPolicy(up, "Pods", 4);
    AddPolicy(up, "Percent", 100);
  }
  autoscalingv2::HPAScalingRules& down = *behavior.mutable_scale_down();
  if (!down.has_select_policy()) down.set_select_policy("Max");
  if (down.policies().empty()) AddPolicy(down, "Percent", 100);
}

void DefaultV2(autoscalingv2::HorizontalPodAutoscaler& object) {
  autoscalingv2::HorizontalPodAutoscalerSpec& spec = *object.mutable_spec();
  if (!spec.has_min_replicas()) spec.set_min_replicas(1);
  if (spec.metrics().empty()) {
    autoscalingv2::MetricSpec& metric = *spec.add_metrics();
    metric.set_type("Resource");
    metric.mutable_resource()->set_name("cpu");
    metric.mutable_resource()->mutable_target()->set_type("Utilization");
    metric.mutable_resource()->mutable_target()->set_average_utilization(kCpuPercent);
  }
  if (spec.has_behavior()) DefaultBehavior(*spec.mutable_behavior());
}

}  // namespace

void RegisterAutoscalingDefaults(DefaultTable& table) {
  table.Add<autoscalingv1::HorizontalPodAutoscaler, DefaultV1>();
  table.Add<autoscalingv2::HorizontalPodAutoscaler, DefaultV2>();
}

}  // namespace keelson::k8s
