// Events of both groups. core accepts more, because of old recorders, than events.k8s.io. Messages always
// use core's field names.
#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr size_t kShort = 128, kNote = 1024;

// The fields of both groups under one set of names.
struct EventView {
  const std::string& ns;
  const corev1::ObjectReference& about;
  bool has_time;
  const std::string &controller, &instance, &action, &reason, &note;
  const char* controller_field;
};

EventView ViewOf(const corev1::Event& event) {
  return {event.metadata().namespace_(),
          event.involved_object(),
          event.has_event_time(),
          event.reporting_component(),
          event.reporting_instance(),
          event.action(),
          event.reason(),
          event.message(),
          "reportingComponent"};
}
EventView ViewOf(const eventsv1::Event& event) {
  return {
      event.metadata().namespace_(), event.regarding(), event.has_event_time(), event.reporting_controller(),
      event.reporting_instance(),    event.action(),    event.reason(),         event.note(),
      "reportingController"};
}

// An event is in the namespace of its object, or in "default" for a cluster-scoped one. Recorders that set
// eventTime may use other namespaces.
void CheckPlace(const EventView& event, FieldErrors& errors) {
  const Path about("involvedObject");
  const std::string& ns = event.about.namespace_();
  const bool fits = event.has_time ? !ns.empty() || event.ns == "default" || event.ns == "kube-system"
                    : ns.empty()   ? event.ns.empty() || event.ns == "default"
                                   : ns == event.ns;
  if (!fits) errors.push_back(Invalid(about.Child("namespace"), ns, "does not match event.namespace"));
}

void CheckShort(const std::string& value, size_t limit, const char* field, bool required,
                FieldErrors& errors) {
  if (required && value.empty()) errors.push_back(Required(Path(field)));
  if (value.size() > limit) {
    errors.push_back(Invalid(Path(field), "", fmt::format("can have at most {} characters", limit)));
  }
}

void CheckCommon(const EventView& event, FieldErrors& errors) {
  CheckPlace(event, errors);
  // Old recorders set no eventTime, and little else.
  if (!event.has_time) return;
  const Path controller(event.controller_field);
  if (event.controller.empty()) errors.push_back(Required(controller));
  AddProblems(CheckQualifiedName(event.controller), event.controller, controller, errors);
  CheckShort(event.instance, kShort, "reportingInstance", true, errors);
  CheckShort(event.action, kShort, "action", true, errors);
  CheckShort(event.reason, kShort, "reason", true, errors);
  CheckShort(event.note, kNote, "message", false, errors);
}

void CheckSeries(const eventsv1::Event& event, FieldErrors& errors) {
  if (!event.has_series()) return;
  if (event.series().count() < 2) {
    errors.push_back(Invalid(Path("series.count"), "", "should be at least 2"));
  }
  if (!event.series().has_last_observed_time()) {
    errors.push_back(Required(Path("series.lastObservedTime")));
  }
}

void CheckCoreEvent(const corev1::Event& event, FieldErrors& errors) { CheckCommon(ViewOf(event), errors); }

void CheckEvent(const eventsv1::Event& event, FieldErrors& errors) {
  CheckCommon(ViewOf(event), errors);
  CheckSeries(event, errors);
  if (!event.has_event_time()) errors.push_back(Required(Path("eventTime")));
  if (event.type() != "Normal" && event.type() != "Warning") {
    errors.push_back(Invalid(Path("type"), "", "has invalid value: " + event.type()));
  }
  const std::pair<const char*, bool> old_fields[] = {
      {"firstTimestamp", event.has_deprecated_first_timestamp()},
      {"lastTimestamp", event.has_deprecated_last_timestamp()},
      {"count", event.deprecated_count() != 0},
      {"source",
       !event.deprecated_source().component().empty() || !event.deprecated_source().host().empty()}};
  for (const auto& [field, set] : old_fields) {
    if (set) errors.push_back(Invalid(Path(field), "", "needs to be unset"));
  }
}

void CheckSameTime(const metav1::Time& time, const metav1::Time& old, const char* field,
                   FieldErrors& errors) {
  if (time.seconds() == old.seconds()) return;
  errors.push_back(InvalidRaw(Path(field), Quote(api::FormatTime(time)), kImmutable));
}

// Only the series of an event may change.
void CheckEventUpdate(const eventsv1::Event& event, const eventsv1::Event& old, FieldErrors& errors) {
  CheckCommon(ViewOf(event), errors);
  if (!SameMessage(event.series(), old.series())) CheckSeries(event, errors);
  CheckFrozen(event.regarding(), old.regarding(), Path("involvedObject"), errors);
  CheckImmutable(event.reason(), old.reason(), Path("reason"), errors);
  CheckImmutable(event.note(), old.note(), Path("message"), errors);
  CheckFrozen(event.deprecated_source(), old.deprecated_source(), Path("source"), errors);
  CheckSameTime(event.deprecated_first_timestamp(), old.deprecated_first_timestamp(), "firstTimestamp",
                errors);
  CheckSameTime(event.deprecated_last_timestamp(), old.deprecated_last_timestamp(), "lastTimestamp", errors);
  if (event.deprecated_count() != old.deprecated_count()) {
    errors.push_back(Invalid(Path("count"), int64_t{event.deprecated_count()}, kImmutable));
  }
  CheckImmutable(event.type(), old.type(), Path("type"), errors);
  CheckImmutable(event.event_time(), old.event_time(), Path("eventTime"), errors);
  CheckImmutable(event.action(), old.action(), Path("action"), errors);
  CheckFrozen(event.related(), old.related(), Path("related"), errors);
  CheckImmutable(event.reporting_controller(), old.reporting_controller(), Path("reportingController"),
                 errors);
  CheckImmutable(event.reporting_instance(), old.reporting_instance(), Path("reportingInstance"), errors);
}

}  // namespace

void RegisterEventRules(RuleTable& table) {
  table.Add<corev1::Event, CheckCoreEvent>().name = CheckPathSegmentName;
  table.Add<eventsv1::Event, CheckEvent>();
  table.AddUpdate<eventsv1::Event, CheckEventUpdate>(true);
}

}  // namespace keelson::k8s
