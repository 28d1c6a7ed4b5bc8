#include "controlplane/controllers/mirroring/controller.h"

#include <fmt/format.h>

#include "controlplane/controllers/endpoints/slice_controller.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr char kByService[] = "service";

}  // namespace

EndpointSliceMirroringController::EndpointSliceMirroringController(client::RestClient api,
                                                                   client::InformerFactory& informers,
                                                                   client::EventRecorder& events,
                                                                   Clock& clock, int max_mirrored)
    : Controller("endpoint_slice_mirroring", clock),
      max_mirrored_(max_mirrored),
      api_(std::move(api)),
      events_(events),
      services_(informers.Get<corev1::Service>()),
      endpoints_(informers.Get<corev1::Endpoints>()),
      slices_(informers.Get<discoveryv1::EndpointSlice>(
          {.label_selector = std::string(kSliceManagedBy) + "=" + kMirroringController})) {
  slices_.AddIndex(kByService, ServiceOfSlice);
  services_.AddHandler([this](const client::Change<corev1::Service>& change) {
    // Only its existence and whether it has a selector matter.
    const bool before = change.old_object && change.old_object->spec().selector().empty();
    const bool now = change.new_object && change.new_object->spec().selector().empty();
    if (before != now) queue().Add(change.key);
  });
  endpoints_.AddHandler([this](const client::Change<corev1::Endpoints>& change) {
    // Most Endpoints belong to Services with a selector.
    auto service = services_.Get(change.key);
    if (!service || service->spec().selector().empty()) queue().Add(change.key);
  });
  slices_.AddHandler([this](const auto& change) { OnSlice(change); });
}

void EndpointSliceMirroringController::OnSlice(const client::Change<discoveryv1::EndpointSlice>& change) {
  for (const auto* object : {change.old_object.get(), change.new_object.get()}) {
    if (!object) continue;
    for (const std::string& service : ServiceOfSlice(*object)) {
      if (!change.new_object) tracker_.NoteGone(service, object->metadata().name());
      queue().Add(service);
    }
  }
}

Result<Requeue> EndpointSliceMirroringController::Reconcile(const std::string& key, std::stop_token stop) {
  const SteadyTime begin = SteadyTime::clock::now();
  std::vector<SlicePointer> all = slices_.ByIndex(kByService, key), slices;
  if (tracker_.IsBehind(key, all)) return Error(Code::kConflict, "own writes have not come back yet");
  for (SlicePointer& slice : all) {
    if (!slice->metadata().has_deletion_timestamp()) slices.push_back(std::move(slice));
  }
  const std::vector<SlicePointer> before = slices;
  auto service = services_.Get(key);
  auto endpoints = endpoints_.Get(key);
  MirrorPlan plan;
  if (service && service->spec().selector().empty() && endpoints && ShouldMirror(*endpoints)) {
    plan = PlanMirror(*endpoints, slices, max_mirrored_);
  } else {
    plan.remove = std::move(slices);
    if (!service) tracker_.Forget(key);
  }
  if (plan.invalid > 0) {
    events_.Record(
        *endpoints, "Warning", "InvalidIPAddress",
        fmt::format("Skipped {} invalid IP addresses when mirroring to EndpointSlices", plan.invalid));
  }
  if (plan.skipped > plan.invalid) {
    events_.Record(
        *endpoints, "Warning", "TooManyAddressesToMirror",
        fmt::format("A max of {} addresses can be mirrored to EndpointSlices per Endpoints subset. {} "
                    "addresses were skipped",
                    max_mirrored_, plan.skipped));
  }
  Result<> applied = ApplySlicePlan(key, plan, api_.With(stop), tracker_);
  if (applied) {
    meters_.Count(key, before, plan, SteadyTime::clock::now() - begin);
    return Requeue{};
  }
  if (endpoints) {
    events_.Record(
        *endpoints, "Warning", "FailedToUpdateEndpointSlices",
        fmt::format("Error updating Endpoint Slices for Endpoints {}: {}", key, applied.error().message()));
  }
  return applied.error();
}

}  // namespace keelson::controllers
