#include "lib/k8s/autoscaler_conversion.h"

#include <fmt/format.h>

#include "lib/api/codec/codec.h"

namespace keelson::k8s {

namespace {

using StringMap = google::protobuf::Map<std::string, std::string>;

constexpr char kMetrics[] = "autoscaling.alpha.kubernetes.io/metrics";
constexpr char kCurrentMetrics[] = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr char kConditions[] = "autoscaling.alpha.kubernetes.io/conditions";
constexpr char kBehavior[] = "autoscaling.alpha.kubernetes.io/behavior";

// ---- one metric ----

template <typename From, typename To>
void CopyReference(const From& from, To& to) {
  if (from.has_kind()) to.set_kind(from.kind());
  if (from.has_name()) to.set_name(from.name());
  if (from.has_api_version()) to.set_api_version(from.api_version());
}

template <typename From, typename To>
void NameOut(const From& from, To& to) {
  if (from.has_name()) to.set_metric_name(from.name());
  if (from.has_selector()) *to.mutable_selector() = from.selector();
}
template <typename From, typename To>
void NameIn(const From& from, To& to) {
  if (from.has_metric_name()) to.set_name(from.metric_name());
  if (from.has_selector()) *to.mutable_selector() = from.selector();
}

autoscalingv1::MetricSpec SpecOut(const autoscalingv2::MetricSpec& from) {
  autoscalingv1::MetricSpec to;
  if (from.has_type()) to.set_type(from.type());
  if (from.has_object()) {
    auto& object = *to.mutable_object();
    CopyReference(from.object().described_object(), *object.mutable_target());
    NameOut(from.object().metric(), object);
    if (from.object().target().has_value()) *object.mutable_target_value() = from.object().target().value();
    if (from.object().target().has_average_value()) {
      *object.mutable_average_value() = from.object().target().average_value();
    }
  }
  if (from.has_pods()) {
    NameOut(from.pods().metric(), *to.mutable_pods());
    if (from.pods().target().has_average_value()) {
      *to.mutable_pods()->mutable_target_average_value() = from.pods().target().average_value();
    }
  }
  const auto resource = [](const auto& source, auto& out) {
    if (source.has_name()) out.set_name(source.name());
    if (source.target().has_average_utilization()) {
      out.set_target_average_utilization(source.target().average_utilization());
    }
    if (source.target().has_average_value()) {
      *out.mutable_target_average_value() = source.target().average_value();
    }
  };
  if (from.has_resource()) resource(from.resource(), *to.mutable_resource());
  if (from.has_container_resource()) {
    resource(from.container_resource(), *to.mutable_container_resource());
    to.mutable_container_resource()->set_container(from.container_resource().container());
  }
  if (from.has_external()) {
    auto& external = *to.mutable_external();
    if (from.external().metric().has_name()) external.set_metric_name(from.external().metric().name());
    if (from.external().metric().has_selector()) {
      *external.mutable_metric_selector() = from.external().metric().selector();
    }
    if (from.external().target().has_value()) {
      *external.mutable_target_value() = from.external().target().value();
    }
    if (from.external().target().has_average_value()) {
      *external.mutable_target_average_value() = from.external().target().average_value();
    }
  }
  return to;
}

autoscalingv2::MetricSpec SpecIn(const autoscalingv1::MetricSpec& from) {
  autoscalingv2::MetricSpec to;
  if (from.has_type()) to.set_type(from.type());
  // Where both are given, the more specific one decides the kind of target.
  const auto target = [](auto& out, const Quantity* value, const Quantity* average) {
    if (value) {
      out.set_type("Value");
      *out.mutable_value() = *value;
    }
    if (average) {
      out.set_type("AverageValue");
      *out.mutable_average_value() = *average;
    }
  };
  if (from.has_object()) {
    const auto& object = from.object();
    CopyReference(object.target(), *to.mutable_object()->mutable_described_object());
    NameIn(object, *to.mutable_object()->mutable_metric());
    const bool by_average = object.has_average_value();
    target(*to.mutable_object()->mutable_target(),
           object.has_target_value() && !by_average ? &object.target_value() : nullptr,
           by_average ? &object.average_value() : nullptr);
  }
  if (from.has_pods()) {
    NameIn(from.pods(), *to.mutable_pods()->mutable_metric());
    target(*to.mutable_pods()->mutable_target(), nullptr, &from.pods().target_average_value());
  }
  const auto resource = [&](const auto& source, auto& out) {
    if (source.has_name()) out.set_name(source.name());
    target(*out.mutable_target(), nullptr,
           source.has_target_average_value() ? &source.target_average_value() : nullptr);
    if (!source.has_target_average_utilization()) return;
    out.mutable_target()->set_type("Utilization");
    out.mutable_target()->set_average_utilization(source.target_average_utilization());
  };
  if (from.has_resource()) resource(from.resource(), *to.mutable_resource());
  if (from.has_container_resource()) {
    resource(from.container_resource(), *to.mutable_container_resource());
    to.mutable_container_resource()->set_container(from.container_resource().container());
  }
  if (from.has_external()) {
    const auto& external = from.external();
    auto& out = *to.mutable_external();
    if (external.has_metric_name()) out.mutable_metric()->set_name(external.metric_name());
    if (external.has_metric_selector()) {
      *out.mutable_metric()->mutable_selector() = external.metric_selector();
    }
    target(*out.mutable_target(), external.has_target_value() ? &external.target_value() : nullptr,
           external.has_target_average_value() ? &external.target_average_value() : nullptr);
  }
  return to;
}

autoscalingv1::MetricStatus StatusOut(const autoscalingv2::MetricStatus& from) {
  autoscalingv1::MetricStatus to;
  if (from.has_type()) to.set_type(from.type());
  if (from.has_object()) {
    auto& object = *to.mutable_object();
    CopyReference(from.object().described_object(), *object.mutable_target());
    NameOut(from.object().metric(), object);
    if (from.object().current().has_value()) {
      *object.mutable_current_value() = from.object().current().value();
    }
    if (from.object().current().has_average_value()) {
      *object.mutable_average_value() = from.object().current().average_value();
    }
  }
  if (from.has_pods()) {
    NameOut(from.pods().metric(), *to.mutable_pods());
    if (from.pods().current().has_average_value()) {
      *to.mutable_pods()->mutable_current_average_value() = from.pods().current().average_value();
    }
  }
  const auto resource = [](const auto& source, auto& out) {
    if (source.has_name()) out.set_name(source.name());
    if (source.current().has_average_utilization()) {
      out.set_current_average_utilization(source.current().average_utilization());
    }
    if (source.current().has_average_value()) {
      *out.mutable_current_average_value() = source.current().average_value();
    }
  };
  if (from.has_resource()) resource(from.resource(), *to.mutable_resource());
  if (from.has_container_resource()) {
    resource(from.container_resource(), *to.mutable_container_resource());
    to.mutable_container_resource()->set_container(from.container_resource().container());
  }
  if (from.has_external()) {
    auto& external = *to.mutable_external();
    if (from.external().metric().has_name()) external.set_metric_name(from.external().metric().name());
    if (from.external().metric().has_selector()) {
      *external.mutable_metric_selector() = from.external().metric().selector();
    }
    if (from.external().current().has_value()) {
      *external.mutable_current_value() = from.external().current().value();
    }
    if (from.external().current().has_average_value()) {
      *external.mutable_current_average_value() = from.external().current().average_value();
    }
  }
  return to;
}

autoscalingv2::MetricStatus StatusIn(const autoscalingv1::MetricStatus& from) {
  autoscalingv2::MetricStatus to;
  if (from.has_type()) to.set_type(from.type());
  if (from.has_object()) {
    auto& object = *to.mutable_object();
    CopyReference(from.object().target(), *object.mutable_described_object());
    NameIn(from.object(), *object.mutable_metric());
    if (from.object().has_current_value()) {
      *object.mutable_current()->mutable_value() = from.object().current_value();
    }
    if (from.object().has_average_value()) {
      *object.mutable_current()->mutable_average_value() = from.object().average_value();
    }
  }
  if (from.has_pods()) {
    NameIn(from.pods(), *to.mutable_pods()->mutable_metric());
    if (from.pods().has_current_average_value()) {
      *to.mutable_pods()->mutable_current()->mutable_average_value() = from.pods().current_average_value();
    }
  }
  const auto resource = [](const auto& source, auto& out) {
    if (source.has_name()) out.set_name(source.name());
    if (source.has_current_average_utilization()) {
      out.mutable_current()->set_average_utilization(source.current_average_utilization());
    }
    if (source.has_current_average_value()) {
      *out.mutable_current()->mutable_average_value() = source.current_average_value();
    }
  };
  if (from.has_resource()) resource(from.resource(), *to.mutable_resource());
  if (from.has_container_resource()) {
    resource(from.container_resource(), *to.mutable_container_resource());
    to.mutable_container_resource()->set_container(from.container_resource().container());
  }
  if (from.has_external()) {
    auto& external = *to.mutable_external();
    if (from.external().has_metric_name()) external.mutable_metric()->set_name(from.external().metric_name());
    if (from.external().has_metric_selector()) {
      *external.mutable_metric()->mutable_selector() = from.external().metric_selector();
    }
    if (from.external().has_current_value()) {
      *external.mutable_current()->mutable_value() = from.external().current_value();
    }
    if (from.external().has_current_average_value()) {
      *external.mutable_current()->mutable_average_value() = from.external().current_average_value();
    }
  }
  return to;
}

// ---- annotations ----

template <typename List>
std::string ToJsonArray(const List& list) {
  std::string out = "[";
  for (const auto& one : list) {
    if (out.size() > 1) out += ',';
    out += api::EncodeJson(one);
  }
  return out + "]";
}

// The elements of a JSON array of objects, as text; empty when it is no such array.
std::vector<std::string_view> ArrayItems(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth == 2 && c == '{') start = i;
    } else if (c == '}' || c == ']') {
      if (depth-- == 2 && c == '}') out.push_back(text.substr(start, i - start + 1));
    }
  }
  return out;
}

// Removes annotation `key` and appends what it contains; text that does not decode counts as absent.
template <typename V1, typename List, typename Convert>
void TakeList(StringMap& annotations, const char* key, List& list, Convert convert) {
  const auto it = annotations.find(key);
  if (it == annotations.end()) return;
  for (std::string_view item : ArrayItems(it->second)) {
    V1 one;
    if (api::DecodeJson(item, one)) *list.Add() = convert(one);
  }
  annotations.erase(key);
}

// Stored behavior has all fields, under the names of Go's struct fields: every release has stored it that
// way.
std::string PrintRules(bool set, const autoscalingv2::HPAScalingRules& rules) {
  if (!set) return "null";
  std::string policies;
  for (const autoscalingv2::HPAScalingPolicy& policy : rules.policies()) {
    policies += fmt::format(R"({}{{"Type":"{}","Value":{},"PeriodSeconds":{}}})", policies.empty() ? "" : ",",
                            policy.type(), policy.value(), policy.period_seconds());
  }
  return fmt::format(R"({{"StabilizationWindowSeconds":{},"SelectPolicy":{},"Policies":{},"Tolerance":{}}})",
                     rules.has_stabilization_window_seconds()
                         ? std::to_string(rules.stabilization_window_seconds())
                         : "null",
                     rules.has_select_policy() ? "\"" + rules.select_policy() + "\"" : "null",
                     rules.policies().empty() ? "null" : "[" + policies + "]",
                     rules.has_tolerance() ? "\"" + rules.tolerance().string() + "\"" : "null");
}
std::string PrintBehavior(const autoscalingv2::HorizontalPodAutoscalerBehavior& behavior) {
  return fmt::format(R"({{"ScaleUp":{},"ScaleDown":{}}})",
                     PrintRules(behavior.has_scale_up(), behavior.scale_up()),
                     PrintRules(behavior.has_scale_down(), behavior.scale_down()));
}

// Converts keys that begin with a capital letter (Go's) to small ones (JSON's).
std::string LowerKeys(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"') continue;
    const size_t end = text.find('"', i + 1);
    if (end == std::string::npos) break;
    const bool is_key = end + 1 < text.size() && text[end + 1] == ':';
    if (is_key && text[i + 1] >= 'A' && text[i + 1] <= 'Z') text[i + 1] = static_cast<char>(text[i + 1] + 32);
    i = end;
  }
  return text;
}

template <typename From, typename To>
void CopyCommonStatus(const From& from, To& to) {
  if (from.has_observed_generation()) to.set_observed_generation(from.observed_generation());
  if (from.has_last_scale_time()) *to.mutable_last_scale_time() = from.last_scale_time();
  if (from.has_current_replicas()) to.set_current_replicas(from.current_replicas());
  if (from.has_desired_replicas()) to.set_desired_replicas(from.desired_replicas());
}

bool IsCpuUtilization(const autoscalingv2::MetricSpec& metric) {
  return metric.type() == "Resource" && metric.resource().name() == "cpu" &&
         metric.resource().target().has_average_utilization();
}

}  // namespace

autoscalingv1::HorizontalPodAutoscaler ToAutoscalingV1(const autoscalingv2::HorizontalPodAutoscaler& from) {
  autoscalingv1::HorizontalPodAutoscaler to;
  if (from.has_metadata()) *to.mutable_metadata() = from.metadata();
  autoscalingv1::HorizontalPodAutoscalerSpec& spec = *to.mutable_spec();
  CopyReference(from.spec().scale_target_ref(), *spec.mutable_scale_target_ref());
  if (from.spec().has_min_replicas()) spec.set_min_replicas(from.spec().min_replicas());
  if (from.spec().has_max_replicas()) spec.set_max_replicas(from.spec().max_replicas());
  google::protobuf::RepeatedPtrField<autoscalingv1::MetricSpec> metrics;
  for (const autoscalingv2::MetricSpec& metric : from.spec().metrics()) {
    if (!IsCpuUtilization(metric)) {
      *metrics.Add() = SpecOut(metric);
    } else if (!spec.has_target_cpu_utilization_percentage()) {
      spec.set_target_cpu_utilization_percentage(metric.resource().target().average_utilization());
    }
  }
  google::protobuf::RepeatedPtrField<autoscalingv1::MetricStatus> current;
  autoscalingv1::HorizontalPodAutoscalerStatus& status = *to.mutable_status();
  CopyCommonStatus(from.status(), status);
  for (const autoscalingv2::MetricStatus& metric : from.status().current_metrics()) {
    *current.Add() = StatusOut(metric);
    if (metric.type() == "Resource" && metric.resource().name() == "cpu" &&
        metric.resource().current().has_average_utilization()) {
      status.set_current_cpu_utilization_percentage(metric.resource().current().average_utilization());
    }
  }
  auto& annotations = *to.mutable_metadata()->mutable_annotations();
  for (const char* key : {kMetrics, kCurrentMetrics, kConditions, kBehavior}) annotations.erase(key);
  if (!metrics.empty()) annotations[kMetrics] = ToJsonArray(metrics);
  if (!current.empty()) annotations[kCurrentMetrics] = ToJsonArray(current);
  if (!from.status().conditions().empty()) {
    // Conditions have the same JSON in both versions.
    annotations[kConditions] = ToJsonArray(from.status().conditions());
  }
  if (from.spec().has_behavior()) annotations[kBehavior] = PrintBehavior(from.spec().behavior());
  return to;
}

autoscalingv2::HorizontalPodAutoscaler ToAutoscalingV2(const autoscalingv1::HorizontalPodAutoscaler& from) {
  autoscalingv2::HorizontalPodAutoscaler to;
  if (from.has_metadata()) *to.mutable_metadata() = from.metadata();
  auto& annotations = *to.mutable_metadata()->mutable_annotations();
  autoscalingv2::HorizontalPodAutoscalerSpec& spec = *to.mutable_spec();
  CopyReference(from.spec().scale_target_ref(), *spec.mutable_scale_target_ref());
  if (from.spec().has_min_replicas()) spec.set_min_replicas(from.spec().min_replicas());
  if (from.spec().has_max_replicas()) spec.set_max_replicas(from.spec().max_replicas());
  TakeList<autoscalingv1::MetricSpec>(annotations, kMetrics, *spec.mutable_metrics(), SpecIn);
  if (from.spec().has_target_cpu_utilization_percentage()) {
    autoscalingv2::MetricSpec cpu;
    cpu.set_type("Resource");
    cpu.mutable_resource()->set_name("cpu");
    cpu.mutable_resource()->mutable_target()->set_type("Utilization");
    cpu.mutable_resource()->mutable_target()->set_average_utilization(
        from.spec().target_cpu_utilization_percentage());
    *spec.add_metrics() = cpu;
  }
  if (const auto behavior = annotations.find(kBehavior); behavior != annotations.end()) {
    if (!api::DecodeJson(LowerKeys(behavior->second), *spec.mutable_behavior())) spec.clear_behavior();
    annotations.erase(kBehavior);
  }
  autoscalingv2::HorizontalPodAutoscalerStatus& status = *to.mutable_status();
  CopyCommonStatus(from.status(), status);
  TakeList<autoscalingv1::MetricStatus>(annotations, kCurrentMetrics, *status.mutable_current_metrics(),
                                        StatusIn);
  TakeList<autoscalingv2::HorizontalPodAutoscalerCondition>(annotations, kConditions,
                                                            *status.mutable_conditions(),
                                                            [](const auto& condition) { return condition; });
  if (status.current_metrics().empty() && from.status().has_current_cpu_utilization_percentage()) {
    autoscalingv2::MetricStatus& cpu = *status.add_current_metrics();
    cpu.set_type("Resource");
    cpu.mutable_resource()->set_name("cpu");
    cpu.mutable_resource()->mutable_current()->set_average_utilization(
        from.status().current_cpu_utilization_percentage());
  }
  api::Normalize(to);
  return to;
}

}  // namespace keelson::k8s
