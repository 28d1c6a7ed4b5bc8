#include "controlplane/storage/convert.h"

#include <cstdlib>

#include "controlplane/apiextensions/custom_objects.h"
#include "lib/api/types.h"
#include "lib/base/log.h"
#include "lib/k8s/autoscaler_conversion.h"

namespace keelson::storage {
namespace {

namespace autoscalingv2 = k8s::autoscalingv2;

// ---- Event ----

void CopyShared(const corev1::Event& from, eventsv1::Event& to) {
  if (from.has_series()) {
    to.mutable_series()->set_count(from.series().count());
    if (from.series().has_last_observed_time()) {
      *to.mutable_series()->mutable_last_observed_time() = from.series().last_observed_time();
    }
  }
}

void CopyShared(const eventsv1::Event& from, corev1::Event& to) {
  if (from.has_series()) {
    to.mutable_series()->set_count(from.series().count());
    if (from.series().has_last_observed_time()) {
      *to.mutable_series()->mutable_last_observed_time() = from.series().last_observed_time();
    }
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
  if (from.has_deprecated_first_timestamp()) {
    *to->mutable_first_timestamp() = from.deprecated_first_timestamp();
  }
  if (from.has_deprecated_last_timestamp()) *to->mutable_last_timestamp() = from.deprecated_last_timestamp();
  if (from.has_deprecated_count()) to->set_count(from.deprecated_count());
  return to;
}

}  // namespace

const api::ResourceInfo& StoredAs(const api::ResourceInfo& info) {
  if (info.IsCustom()) {
    apiextensions::CustomResource& resource = *apiextensions::CustomOf(info)->owner;
    std::shared_ptr<const apiextensions::Definition> definition = resource.definition();
    return definition ? resource.Row(definition->StorageVersion().name) : info;
  }
  static const api::ResourceInfo* const events = api::FindResource("", "v1", "events");
  static const api::ResourceInfo* const hpas =
      api::FindResource("autoscaling", "v2", "horizontalpodautoscalers");
  if (events && info.etcd_prefix == events->etcd_prefix) return *events;
  if (hpas && info.etcd_prefix == hpas->etcd_prefix) return *hpas;
  return info;
}

Result<StoredVersion> FindStoredVersion(const api::ResourceInfo& stored, const api::TypeMeta& type) {
  if (type.api_version != stored.ApiVersion()) {
    const auto [group, version] = api::SplitApiVersion(type.api_version);
    const api::ResourceInfo* other = api::FindKind(group, version, stored.kind);
    if (other && &StoredAs(*other) == &stored) return StoredVersion{other->descriptor(), true, Convert};
  }
  return FindOwnVersion(stored, type);
}

std::unique_ptr<api::Message> Convert(const api::Message& from, const api::ResourceInfo& to) {
  const api::Descriptor* source = from.GetDescriptor();
  const api::Descriptor* target = to.descriptor();
  if (to.IsCustom()) return apiextensions::Relabel(*apiextensions::CustomOf(to), from);
  if (source == target) {
    std::unique_ptr<api::Message> copy(from.New());
    copy->CopyFrom(from);
    return copy;
  }
  if (source == corev1::Event::descriptor() && target == eventsv1::Event::descriptor()) {
    return ToEventsV1(static_cast<const corev1::Event&>(from));
  }
  if (source == eventsv1::Event::descriptor() && target == corev1::Event::descriptor()) {
    return ToCoreV1(static_cast<const eventsv1::Event&>(from));
  }
  if (source == autoscalingv2::HorizontalPodAutoscaler::descriptor() &&
      target == autoscalingv1::HorizontalPodAutoscaler::descriptor()) {
    return std::make_unique<autoscalingv1::HorizontalPodAutoscaler>(
        k8s::ToAutoscalingV1(static_cast<const autoscalingv2::HorizontalPodAutoscaler&>(from)));
  }
  if (source == autoscalingv1::HorizontalPodAutoscaler::descriptor() &&
      target == autoscalingv2::HorizontalPodAutoscaler::descriptor()) {
    return std::make_unique<autoscalingv2::HorizontalPodAutoscaler>(
        k8s::ToAutoscalingV2(static_cast<const autoscalingv1::HorizontalPodAutoscaler&>(from)));
  }
  log::Error("No conversion", {{"from", source->full_name()}, {"to", target->full_name()}});
  std::abort();
}

}  // namespace keelson::storage
