#include "controlplane/storage/convert.h"

#include <cstdlib>

#include "lib/api/codec.h"
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/types.h"
#include "lib/base/log.h"

namespace keelson::storage {
namespace {

namespace autoscalingv2 = api::autoscaling::v2;

// ---- Event ----

void CopyShared(const corev1::Event& from, eventsv1::Event& to) {
  if (from.has_series()) {
    to.mutable_series()->set_count(from.series().count());
    if (from.series().has_last_observed_time())
      *to.mutable_series()->mutable_last_observed_time() = from.series().last_observed_time();
  }
}

void CopyShared(const eventsv1::Event& from, corev1::Event& to) {
  if (from.has_series()) {
    to.mutable_series()->set_count(from.series().count());
    if (from.series().has_last_observed_time())
      *to.mutable_series()->mutable_last_observed_time() = from.series().last_observed_time();
  }
}

std::unique_ptr<api::Message> ToEventsV1(const corev1::Event& from) {
  auto to = std::make_unique<eventsv1::Event>();
  if (from.has_metadata()) *to->mutable_metadata() = from.metadata();
  if (from.has_event_time()) *to->mutable_event_time() = from.event_time();
  CopyShared(from, *to);
  if (from.has_reporting_component()) to->set_reporting_controller(from.reporting_component());
  if (from.has_reporting_instance()) to->set_reporting_instance(from.reporting_instance());
  if (from.has_action()) to->set_action(from.action());
  if (from.has_reason()) to->set_reason(from.reason());
  if (from.has_involved_object()) *to->mutable_regarding() = from.involved_object();
  if (from.has_related()) *to->mutable_related() = from.related();
  if (from.has_message()) to->set_note(from.message());
  if (from.has_type()) to->set_type(from.type());
  if (from.has_source()) *to->mutable_deprecated_source() = from.source();
  if (from.has_first_timestamp()) *to->mutable_deprecated_first_timestamp() = from.first_timestamp();
  if (from.has_last_timestamp()) *to->mutable_deprecated_last_timestamp() = from.last_timestamp();
  if (from.has_count()) to->set_deprecated_count(from.count());
  return to;
}

std::unique_ptr<api::Message> ToCoreV1(const eventsv1::Event& from) {
  auto to = std::make_unique<corev1::Event>();
  if (from.has_metadata()) *to->mutable_metadata() = from.metadata();
  if (from.has_event_time()) *to->mutable_event_time() = from.event_time();
  CopyShared(from, *to);
  if (from.has_reporting_controller()) to->set_reporting_component(from.reporting_controller());
  if (from.has_reporting_instance()) to->set_reporting_instance(from.reporting_instance());
  if (from.has_action()) to->set_action(from.action());
  if (from.has_reason()) to->set_reason(from.reason());
  if (from.has_regarding()) *to->mutable_involved_object() = from.regarding();
  if (from.has_related()) *to->mutable_related() = from.related();
  if (from.has_note()) to->set_message(from.note());
  if (from.has_type()) to->set_type(from.type());
  if (from.has_deprecated_source()) *to->mutable_source() = from.deprecated_source();
  if (from.has_deprecated_first_timestamp())
    *to->mutable_first_timestamp() = from.deprecated_first_timestamp();
  if (from.has_deprecated_last_timestamp()) *to->mutable_last_timestamp() = from.deprecated_last_timestamp();
  if (from.has_deprecated_count()) to->set_count(from.deprecated_count());
  return to;
}

// ---- HorizontalPodAutoscaler ----

// v1 knows one metric; the whole of v2's spec, where it says more, travels in an annotation of this name.
constexpr const char* kSpecAnnotation = "autoscaling.keelson.dev/v2-spec";
constexpr const char* kStatusAnnotation = "autoscaling.keelson.dev/v2-status";

bool IsCpuUtilization(const autoscalingv2::MetricSpec& metric) {
  return metric.type() == "Resource" && metric.resource().name() == "cpu" &&
         metric.resource().target().has_average_utilization();
}

std::unique_ptr<api::Message> ToHpaV1(const autoscalingv2::HorizontalPodAutoscaler& from) {
  auto to = std::make_unique<autoscalingv1::HorizontalPodAutoscaler>();
  if (from.has_metadata()) *to->mutable_metadata() = from.metadata();
  auto& spec = *to->mutable_spec();
  const auto& ref = from.spec().scale_target_ref();
  auto& to_ref = *spec.mutable_scale_target_ref();
  if (ref.has_kind()) to_ref.set_kind(ref.kind());
  if (ref.has_name()) to_ref.set_name(ref.name());
  if (ref.has_api_version()) to_ref.set_api_version(ref.api_version());
  if (from.spec().has_min_replicas()) spec.set_min_replicas(from.spec().min_replicas());
  if (from.spec().has_max_replicas()) spec.set_max_replicas(from.spec().max_replicas());
  bool lossless = !from.spec().has_behavior();
  for (const auto& metric : from.spec().metrics()) {
    if (IsCpuUtilization(metric) && !spec.has_target_cpu_utilization_percentage()) {
      spec.set_target_cpu_utilization_percentage(metric.resource().target().average_utilization());
    } else {
      lossless = false;
    }
  }
  auto& annotations = *to->mutable_metadata()->mutable_annotations();
  if (!lossless) annotations[kSpecAnnotation] = api::EncodeJson(from.spec());
  const auto& status = from.status();
  auto& to_status = *to->mutable_status();
  if (status.has_observed_generation()) to_status.set_observed_generation(status.observed_generation());
  if (status.has_last_scale_time()) *to_status.mutable_last_scale_time() = status.last_scale_time();
  if (status.has_current_replicas()) to_status.set_current_replicas(status.current_replicas());
  if (status.has_desired_replicas()) to_status.set_desired_replicas(status.desired_replicas());
  for (const auto& metric : status.current_metrics()) {
    if (metric.type() == "Resource" && metric.resource().name() == "cpu" &&
        metric.resource().current().has_average_utilization())
      to_status.set_current_cpu_utilization_percentage(metric.resource().current().average_utilization());
  }
  if (status.conditions_size() > 0) annotations[kStatusAnnotation] = api::EncodeJson(status);
  return to;
}

std::unique_ptr<api::Message> ToHpaV2(const autoscalingv1::HorizontalPodAutoscaler& from) {
  auto to = std::make_unique<autoscalingv2::HorizontalPodAutoscaler>();
  if (from.has_metadata()) *to->mutable_metadata() = from.metadata();
  auto& annotations = *to->mutable_metadata()->mutable_annotations();
  auto& spec = *to->mutable_spec();
  auto full = annotations.find(kSpecAnnotation);
  if (full != annotations.end() && !api::DecodeJson(full->second, spec)) spec.Clear();
  const auto& ref = from.spec().scale_target_ref();
  auto& to_ref = *spec.mutable_scale_target_ref();
  if (ref.has_kind()) to_ref.set_kind(ref.kind());
  if (ref.has_name()) to_ref.set_name(ref.name());
  if (ref.has_api_version()) to_ref.set_api_version(ref.api_version());
  if (from.spec().has_min_replicas()) spec.set_min_replicas(from.spec().min_replicas());
  spec.set_max_replicas(from.spec().max_replicas());
  if (from.spec().has_target_cpu_utilization_percentage()) {
    autoscalingv2::MetricSpec* cpu = nullptr;
    for (auto& metric : *spec.mutable_metrics()) {
      if (IsCpuUtilization(metric)) cpu = &metric;
    }
    if (!cpu) cpu = spec.add_metrics();
    cpu->set_type("Resource");
    cpu->mutable_resource()->set_name("cpu");
    cpu->mutable_resource()->mutable_target()->set_type("Utilization");
    cpu->mutable_resource()->mutable_target()->set_average_utilization(
        from.spec().target_cpu_utilization_percentage());
  }
  auto& status = *to->mutable_status();
  auto full_status = annotations.find(kStatusAnnotation);
  if (full_status != annotations.end() && !api::DecodeJson(full_status->second, status)) status.Clear();
  if (from.status().has_observed_generation())
    status.set_observed_generation(from.status().observed_generation());
  if (from.status().has_last_scale_time())
    *status.mutable_last_scale_time() = from.status().last_scale_time();
  if (from.status().has_current_replicas()) status.set_current_replicas(from.status().current_replicas());
  if (from.status().has_desired_replicas()) status.set_desired_replicas(from.status().desired_replicas());
  annotations.erase(kSpecAnnotation);
  annotations.erase(kStatusAnnotation);
  api::Normalize(*to);
  return to;
}

}  // namespace

const api::ResourceInfo& StoredAs(const api::ResourceInfo& info) {
  static const api::ResourceInfo* const events = api::FindResource("", "v1", "events");
  static const api::ResourceInfo* const hpas =
      api::FindResource("autoscaling", "v2", "horizontalpodautoscalers");
  if (events && info.etcd_prefix == events->etcd_prefix) return *events;
  if (hpas && info.etcd_prefix == hpas->etcd_prefix) return *hpas;
  return info;
}

std::unique_ptr<api::Message> Convert(const api::Message& from, const api::ResourceInfo& to) {
  const api::Descriptor* source = from.GetDescriptor();
  const api::Descriptor* target = to.descriptor();
  if (source == target) {
    std::unique_ptr<api::Message> copy(from.New());
    copy->CopyFrom(from);
    return copy;
  }
  if (source == corev1::Event::descriptor() && target == eventsv1::Event::descriptor())
    return ToEventsV1(static_cast<const corev1::Event&>(from));
  if (source == eventsv1::Event::descriptor() && target == corev1::Event::descriptor())
    return ToCoreV1(static_cast<const eventsv1::Event&>(from));
  if (source == autoscalingv2::HorizontalPodAutoscaler::descriptor() &&
      target == autoscalingv1::HorizontalPodAutoscaler::descriptor())
    return ToHpaV1(static_cast<const autoscalingv2::HorizontalPodAutoscaler&>(from));
  if (source == autoscalingv1::HorizontalPodAutoscaler::descriptor() &&
      target == autoscalingv2::HorizontalPodAutoscaler::descriptor())
    return ToHpaV2(static_cast<const autoscalingv1::HorizontalPodAutoscaler&>(from));
  log::Error("No conversion", {{"from", source->full_name()}, {"to", target->full_name()}});
  std::abort();
}

}  // namespace keelson::storage
