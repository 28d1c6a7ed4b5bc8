// HorizontalPodAutoscalers. Those of autoscaling/v1 are converted to autoscaling/v2 first.
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/quantity.h"
#include "lib/k8s/autoscaler_conversion.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {

namespace {

using autoscalingv2::MetricSpec;
using autoscalingv2::MetricTarget;

constexpr int32_t kMaxStabilization = 3600, kMaxPeriod = 1800;

// What a reference to an object may leave out.
struct ReferenceRules {
  bool any_version = false;  // an apiVersion that cannot be parsed
  bool no_group = false;     // an apiVersion of the core group, or none
};

struct Leniency {
  int32_t min_replicas = 1;
  ReferenceRules target, described;
};

bool IsGroupVersion(const std::string& api_version) {
  return api_version == "/" || std::count(api_version.begin(), api_version.end(), '/') <= 1;
}

bool HasGroup(const std::string& api_version) { return api_version.find('/', 1) != std::string::npos; }

void CheckReference(const autoscalingv2::CrossVersionObjectReference& reference, const ReferenceRules& rules,
                    const Path& path, FieldErrors& errors) {
  CheckName(reference.kind(), CheckPathSegmentName, path.Child("kind"), errors);
  CheckName(reference.name(), CheckPathSegmentName, path.Child("name"), errors);
  if (rules.any_version) return;
  const std::string& api_version = reference.api_version();
  const Path place = path.Child("apiVersion");
  if (!IsGroupVersion(api_version)) {
    errors.push_back(Invalid(place, api_version, "unexpected GroupVersion string: " + api_version));
  } else if (!rules.no_group && !HasGroup(api_version)) {
    errors.push_back(Invalid(place, api_version, "apiVersion must specify API group"));
  }
}

void CheckPositive(bool set, const Quantity& value, const Path& path, FieldErrors& errors) {
  if (set && SignOf(value) != 1) {
    errors.push_back(Invalid(path, api::Amount::Of(value).ToString(), "must be positive"));
  }
}

void CheckTarget(const MetricTarget& target, const Path& path, FieldErrors& errors) {
  if (target.type().empty()) {
    errors.push_back(Required(path.Child("type"), "must specify a metric target type"));
  }
  if (target.type() != "Utilization" && target.type() != "Value" && target.type() != "AverageValue") {
    errors.push_back(
        Invalid(path.Child("type"), target.type(), "must be either Utilization, Value, or AverageValue"));
  }
  CheckPositive(target.has_value(), target.value(), path.Child("value"), errors);
  CheckPositive(target.has_average_value(), target.average_value(), path.Child("averageValue"), errors);
  if (target.has_average_utilization() && target.average_utilization() < 1) {
    errors.push_back(Invalid(path.Child("averageUtilization"), int64_t{target.average_utilization()},
                             "must be greater than 0"));
  }
}

void CheckIdentifier(const autoscalingv2::MetricIdentifier& metric, const Path& path, FieldErrors& errors) {
  if (metric.name().empty()) {
    errors.push_back(Required(path.Child("name"), "must specify a metric name"));
  } else {
    AddProblems(CheckPathSegmentName(metric.name()), metric.name(), path.Child("name"), errors);
  }
}

void CheckObject(const autoscalingv2::ObjectMetricSource& source, const ReferenceRules& described,
                 const Path& path, FieldErrors& errors) {
  CheckReference(source.described_object(), described, path.Child("describedObject"), errors);
  CheckIdentifier(source.metric(), path.Child("metric"), errors);
  const Path target = path.Child("target");
  CheckTarget(source.target(), target, errors);
  if (!source.target().has_value() && !source.target().has_average_value()) {
    errors.push_back(
        Required(target.Child("averageValue"), "must set either a target value or averageValue"));
  }
}

void CheckExternal(const autoscalingv2::ExternalMetricSource& source, const Path& path, FieldErrors& errors) {
  CheckIdentifier(source.metric(), path.Child("metric"), errors);
  const Path target = path.Child("target");
  CheckTarget(source.target(), target, errors);
  const bool value = source.target().has_value(), average = source.target().has_average_value();
  if (!value && !average) {
    errors.push_back(Required(target.Child("averageValue"),
                              "must set either a target value for metric or a per-pod target"));
  }
  if (value && average) {
    errors.push_back(
        Forbidden(target.Child("value"), "may not set both a target value for metric and a per-pod target"));
  }
}

void CheckPods(const autoscalingv2::PodsMetricSource& source, const Path& path, FieldErrors& errors) {
  CheckIdentifier(source.metric(), path.Child("metric"), errors);
  const Path target = path.Child("target");
  CheckTarget(source.target(), target, errors);
  if (!source.target().has_average_value()) {
    errors.push_back(Required(target.Child("averageValue"), "must specify a positive target averageValue"));
  }
}

void CheckResourceTarget(const MetricTarget& metric, const Path& path, FieldErrors& errors) {
  CheckTarget(metric, path, errors);
  if (!metric.has_average_utilization() && !metric.has_average_value()) {
    errors.push_back(Required(path.Child("averageUtilization"),
                              "must set either a target raw value or a target utilization"));
  }
  if (metric.has_average_utilization() && metric.has_average_value()) {
    errors.push_back(Forbidden(path.Child("averageValue"),
                               "may not set both a target raw value and a target utilization"));
  }
}

void CheckResource(const autoscalingv2::ResourceMetricSource& source, const Path& path, FieldErrors& errors) {
  if (source.name().empty()) errors.push_back(Required(path.Child("name"), "must specify a resource name"));
  CheckResourceTarget(source.target(), path.Child("target"), errors);
}

void CheckContainerResource(const autoscalingv2::ContainerResourceMetricSource& source, const Path& path,
                            FieldErrors& errors) {
  const Path name = path.Child("name"), container = path.Child("container");
  if (source.name().empty()) {
    errors.push_back(Required(name, "must specify a resource name"));
  } else {
    CheckContainerResourceName(source.name(), name, errors);
  }
  if (source.container().empty()) {
    errors.push_back(Required(container, "must specify a container"));
  } else {
    AddProblems(CheckDns1123Label(source.container()), source.container(), container, errors);
  }
  CheckResourceTarget(source.target(), path.Child("target"), errors);
}

void CheckMetric(const MetricSpec& metric, const ReferenceRules& described, const Path& path,
                 FieldErrors& errors) {
  struct Source {
    const char *type, *field;
    bool set;
  };
  const Source sources[] = {{"Object", "object", metric.has_object()},
                            {"External", "external", metric.has_external()},
                            {"Pods", "pods", metric.has_pods()},
                            {"Resource", "resource", metric.has_resource()},
                            {"ContainerResource", "containerResource", metric.has_container_resource()}};
  if (metric.type().empty()) {
    errors.push_back(Required(path.Child("type"), "must specify a metric source type"));
  }
  const auto check_type = [&] {
    CheckOneOf(metric.type(), {"ContainerResource", "External", "Object", "Pods", "Resource"},
               path.Child("type"), errors);
  };
  check_type();
  int count = 0;
  // Only the first source is checked.
  const auto look = [&](bool set, const auto& source, const char* field, auto check) {
    if (set && ++count == 1) check(source, path.Child(field), errors);
  };
  look(metric.has_object(), metric.object(), "object",
       [&](const auto& source, const Path& place, FieldErrors& into) {
         CheckObject(source, described, place, into);
       });
  look(metric.has_external(), metric.external(), "external", CheckExternal);
  look(metric.has_pods(), metric.pods(), "pods", CheckPods);
  look(metric.has_resource(), metric.resource(), "resource", CheckResource);
  look(metric.has_container_resource(), metric.container_resource(), "containerResource",
       CheckContainerResource);
  check_type();  // upstream reports it twice
  for (const Source& source : sources) {
    if (metric.type() == source.type && !source.set) {
      errors.push_back(
          Required(path.Child(source.field), "must populate information for the given metric source"));
    }
  }
  if (count == 1) return;
  for (const Source& source : sources) {
    if (source.set && metric.type() != source.type) {
      errors.push_back(Forbidden(path.Child(source.field), "must populate the given metric source only"));
    }
  }
}

void CheckPolicy(const autoscalingv2::HPAScalingPolicy& policy, const Path& path, FieldErrors& errors) {
  CheckOneOf(policy.type(), {"Percent", "Pods"}, path.Child("type"), errors);
  constexpr char kPositive[] = "must be greater than zero";
  if (policy.value() <= 0) errors.push_back(Invalid(path.Child("value"), int64_t{policy.value()}, kPositive));
  const Path period = path.Child("periodSeconds");
  if (policy.period_seconds() <= 0) {
    errors.push_back(Invalid(period, int64_t{policy.period_seconds()}, kPositive));
  }
  if (policy.period_seconds() > kMaxPeriod) {
    errors.push_back(Invalid(period, int64_t{policy.period_seconds()},
                             fmt::format("must be less than or equal to {}", kMaxPeriod)));
  }
}

void CheckScalingRules(const autoscalingv2::HPAScalingRules& rules, const Path& path, FieldErrors& errors) {
  const Path window = path.Child("stabilizationWindowSeconds");
  if (rules.stabilization_window_seconds() < 0) {
    errors.push_back(Invalid(window, int64_t{rules.stabilization_window_seconds()},
                             "must be greater than or equal to zero"));
  }
  if (rules.stabilization_window_seconds() > kMaxStabilization) {
    errors.push_back(Invalid(window, int64_t{rules.stabilization_window_seconds()},
                             fmt::format("must be less than or equal to {}", kMaxStabilization)));
  }
  if (rules.has_select_policy()) {
    CheckOneOf(rules.select_policy(), {"Disabled", "Max", "Min"}, path.Child("selectPolicy"), errors);
  }
  const Path policies = path.Child("policies");
  if (rules.policies().empty()) errors.push_back(Required(policies, "must specify at least one Policy"));
  for (int i = 0; i < rules.policies_size(); ++i) CheckPolicy(rules.policies(i), policies.Index(i), errors);
  if (rules.has_tolerance()) CheckNonNegativeQuantity(rules.tolerance(), path.Child("tolerance"), errors);
}

void CheckSpec(const autoscalingv2::HorizontalPodAutoscalerSpec& spec, const Leniency& leniency,
               FieldErrors& errors) {
  const Path path("spec");
  const bool has_min = spec.has_min_replicas();
  if (has_min && spec.min_replicas() < leniency.min_replicas) {
    errors.push_back(Invalid(path.Child("minReplicas"), int64_t{spec.min_replicas()},
                             fmt::format("must be greater than or equal to {}", leniency.min_replicas)));
  }
  const Path max = path.Child("maxReplicas");
  if (spec.max_replicas() == 0) {
    errors.push_back(Required(max, "must be set and greater than 0"));
  } else if (spec.max_replicas() < 0) {
    errors.push_back(Invalid(max, int64_t{spec.max_replicas()}, "must be greater than or equal to 1"));
  }
  if (has_min && spec.max_replicas() < spec.min_replicas()) {
    errors.push_back(
        Invalid(max, int64_t{spec.max_replicas()}, "must be greater than or equal to `minReplicas`"));
  }
  CheckReference(spec.scale_target_ref(), leniency.target, path.Child("scaleTargetRef"), errors);
  const Path metrics = path.Child("metrics");
  bool scales_from_zero = false;
  for (int i = 0; i < spec.metrics_size(); ++i) {
    CheckMetric(spec.metrics(i), leniency.described, metrics.Index(i), errors);
    scales_from_zero =
        scales_from_zero || spec.metrics(i).type() == "Object" || spec.metrics(i).type() == "External";
  }
  if (has_min && spec.min_replicas() == 0 && !scales_from_zero) {
    errors.push_back(Forbidden(
        metrics, "must specify at least one Object or External metric to support scaling to zero replicas"));
  }
  const Path behavior = path.Child("behavior");
  if (spec.behavior().has_scale_up()) {
    CheckScalingRules(spec.behavior().scale_up(), behavior.Child("scaleUp"), errors);
  }
  if (spec.behavior().has_scale_down()) {
    CheckScalingRules(spec.behavior().scale_down(), behavior.Child("scaleDown"), errors);
  }
}

// What the stored object already has may stay.
Leniency LeniencyFor(const autoscalingv2::HorizontalPodAutoscalerSpec& spec,
                     const autoscalingv2::HorizontalPodAutoscalerSpec* old) {
  const auto had_zero = [&] { return old->has_min_replicas() && old->min_replicas() == 0; };
  const autoscalingv2::CrossVersionObjectReference& target = spec.scale_target_ref();
  Leniency leniency;
  if (Settings().autoscale_to_zero || (old != nullptr && had_zero())) leniency.min_replicas = 0;
  // The only kind in the core group that scales.
  leniency.target.no_group = target.kind() == "ReplicationController";
  leniency.described.no_group = true;
  if (old == nullptr) return leniency;
  leniency.target.any_version = target.api_version() == old->scale_target_ref().api_version() &&
                                target.kind() == old->scale_target_ref().kind();
  leniency.described.any_version =
      std::any_of(old->metrics().begin(), old->metrics().end(), [](const MetricSpec& metric) {
        return !IsGroupVersion(metric.object().described_object().api_version());
      });
  return leniency;
}

const autoscalingv2::HorizontalPodAutoscaler& AsV2(const autoscalingv2::HorizontalPodAutoscaler& object) {
  return object;
}

autoscalingv2::HorizontalPodAutoscaler AsV2(const autoscalingv1::HorizontalPodAutoscaler& object) {
  return ToAutoscalingV2(object);
}

template <typename Autoscaler>
void CheckAutoscaler(const Autoscaler& object, FieldErrors& errors) {
  const auto& now = AsV2(object);
  CheckSpec(now.spec(), LeniencyFor(now.spec(), nullptr), errors);
}

template <typename Autoscaler>
void CheckAutoscalerUpdate(const Autoscaler& object, const Autoscaler& old, FieldErrors& errors) {
  const auto &now = AsV2(object), &before = AsV2(old);
  CheckSpec(now.spec(), LeniencyFor(now.spec(), &before.spec()), errors);
}

template <typename Autoscaler>
void CheckAutoscalerStatus(const Autoscaler& object, const Autoscaler&, FieldErrors& errors) {
  const Path status("status");
  CheckNonNegative(object.status().current_replicas(), status.Child("currentReplicas"), errors);
  CheckNonNegative(object.status().desired_replicas(), status.Child("desiredReplicas"), errors);
}

}  // namespace

void RegisterAutoscalerRules(RuleTable& table) {
  using V1 = autoscalingv1::HorizontalPodAutoscaler;
  using V2 = autoscalingv2::HorizontalPodAutoscaler;
  table.Add<V1, CheckAutoscaler<V1>>();
  table.AddUpdate<V1, CheckAutoscalerUpdate<V1>>(true);
  table.AddStatus<V1, CheckAutoscalerStatus<V1>>();
  table.Add<V2, CheckAutoscaler<V2>>();
  table.AddUpdate<V2, CheckAutoscalerUpdate<V2>>(true);
  table.AddStatus<V2, CheckAutoscalerStatus<V2>>();
}

}  // namespace keelson::k8s
