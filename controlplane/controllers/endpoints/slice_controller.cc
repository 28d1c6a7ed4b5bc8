#include "controlplane/controllers/endpoints/slice_controller.h"

#include <fmt/format.h>

#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kByService[] = "service";

std::string ZoneOf(const corev1::Node& node) {
  auto it = node.metadata().labels().find(kZone);
  return it == node.metadata().labels().end() ? "" : it->second;
}

}  // namespace

std::vector<std::string> ServiceOfSlice(const discoveryv1::EndpointSlice& slice) {
  auto it = slice.metadata().labels().find(kServiceName);
  if (it == slice.metadata().labels().end() || it->second.empty()) return {};
  return {api::KeyOf(slice.metadata().namespace_(), it->second)};
}

EndpointSliceController::EndpointSliceController(client::RestClient api, client::InformerFactory& informers,
                                                 client::EventRecorder& events, Clock& clock,
                                                 EndpointPods& pods, size_t max_endpoints)
    : Controller("endpoint_slice", clock, 4),
      api_(std::move(api)),
      events_(events),
      pods_(pods),
      max_endpoints_(max_endpoints),
      services_(informers.Get<corev1::Service>()),
      slices_(informers.Get<discoveryv1::EndpointSlice>(
          {.label_selector = std::string(kSliceManagedBy) + "=" + kSliceController})),
      nodes_(informers.Get<corev1::Node>()) {
  slices_.AddIndex(kByService, ServiceOfSlice);
  pods_.OnService([this](const std::string& key) { queue().Add(key); });
  slices_.AddHandler([this](const auto& change) { OnSlice(change); });
  nodes_.AddHandler([this](const auto& change) { OnNode(change); });
}

void EndpointSliceController::OnSlice(const client::Change<discoveryv1::EndpointSlice>& change) {
  for (const auto* object : {change.old_object.get(), change.new_object.get()}) {
    if (!object) continue;
    for (const std::string& service : ServiceOfSlice(*object)) {
      if (!change.new_object) tracker_.NoteGone(service, object->metadata().name());
      queue().Add(service);
    }
  }
}

// A node's zone is part of its endpoints, but it rarely changes after creation. Its CPUs matter for topology
// hints only.
void EndpointSliceController::OnNode(const client::Change<corev1::Node>& change) {
  const auto of = [](const auto& node, auto what) { return node ? what(*node) : std::string(); };
  const bool moved = of(change.old_object, ZoneOf) != of(change.new_object, ZoneOf);
  const bool resized = of(change.old_object, ShareKeyOf) != of(change.new_object, ShareKeyOf);
  if (change.new_object) {
    MutexLock lock(mutex_);
    if (auto services = awaited_.extract(change.key)) {
      for (const std::string& service : services.mapped()) queue().Add(service);
    }
  }
  if (resized) {
    MutexLock lock(mutex_);
    shares_.reset();
    ++share_changes_;
  }
  if (!moved && !resized) return;
  for (const auto& service : services_.List()) {
    if (moved || HintModeOf(*service) == HintMode::kTopology) queue().Add(api::KeyOf(*service));
  }
}

ZoneShares EndpointSliceController::Shares() {
  uint64_t changes;
  {
    MutexLock lock(mutex_);
    if (shares_) return *shares_;
    changes = share_changes_;
  }
  ZoneShares shares = SharesOf(nodes_.List());
  MutexLock lock(mutex_);
  if (changes == share_changes_) shares_ = shares;
  return shares;
}

void EndpointSliceController::DropStranded(const std::string& key, std::vector<EndpointPodPointer>& pods) {
  std::erase_if(pods, [&](const EndpointPodPointer& pod) {
    if (nodes_.Get(pod->node)) return false;
    {
      MutexLock lock(mutex_);
      awaited_[pod->node].insert(key);
    }
    // The node may have appeared just now.
    return !nodes_.Get(pod->node);
  });
}

void EndpointSliceController::TellHints(const std::string& key, const corev1::Service& service,
                                        const SlicePlan& plan) {
  MutexLock lock(mutex_);
  auto before = told_[key];
  const auto disabled = [&](const std::string& family, std::string_view why) {
    events_.Record(service, "Warning", "TopologyAwareHintsDisabled",
                   fmt::format("{}, addressType: {}", why, family));
  };
  for (const auto& [family, problem] : plan.hint_problems) {
    const auto told = before.find(family);
    if (told != before.end() && told->second == problem) continue;
    if (!problem.empty()) {
      disabled(family, problem);
    } else {
      events_.Record(service, "Normal", "TopologyAwareHintsEnabled",
                     "Topology Aware Hints has been enabled, addressType: " + family);
    }
  }
  for (const auto& [family, problem] : before) {
    if (problem.empty() && !plan.hint_problems.count(family)) {
      disabled(family, "Topology Aware Hints has been disabled");
    }
  }
  told_[key] = plan.hint_problems;
  if (plan.hint_problems.empty()) told_.erase(key);
}

Result<> ApplySlicePlan(const std::string& service, const SlicePlan& plan, const client::RestClient& api,
                        SliceTracker& tracker) {
  // Create slices first: during a move an endpoint is better listed twice than not at all.
  for (const discoveryv1::EndpointSlice& slice : plan.create) {
    Result<discoveryv1::EndpointSlice> stored = api.Create(slice);
    if (!stored && IsNamespaceTerminating(stored.error())) return {};
    if (!stored) return stored.error().Wrap("create EndpointSlice");
    tracker.NoteWritten(service, *stored);
  }
  for (const discoveryv1::EndpointSlice& slice : plan.update) {
    Result<discoveryv1::EndpointSlice> stored = api.Update(slice);
    if (!stored) return stored.error().Wrap("update EndpointSlice");
    tracker.NoteWritten(service, *stored);
  }
  for (const SlicePointer& slice : plan.remove) {
    const metav1::ObjectMeta& meta = slice->metadata();
    Result<> deleted =
        api.Delete<discoveryv1::EndpointSlice>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
    if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete EndpointSlice");
  }
  return {};
}

Result<Requeue> EndpointSliceController::Reconcile(const std::string& key, std::stop_token stop) {
  auto service = services_.Get(key);
  if (!service) {
    // The garbage collector deletes the slices with the Service.
    trigger_times_.Forget(key);
    tracker_.Forget(key);
    totals_.Forget(key);
    MutexLock lock(mutex_);
    told_.erase(key);
    for (auto it = awaited_.begin(); it != awaited_.end();) {
      it->second.erase(key);
      it = it->second.empty() ? awaited_.erase(it) : std::next(it);
    }
    return Requeue{};
  }
  if (service->spec().type() == "ExternalName" || service->spec().selector().empty()) return Requeue{};
  if (service->metadata().has_deletion_timestamp()) return Requeue{};

  std::vector<SlicePointer> all = slices_.ByIndex(kByService, key), slices;
  if (tracker_.IsBehind(key, all)) return Error(Code::kConflict, "own writes have not come back yet");
  for (SlicePointer& slice : all) {
    if (!slice->metadata().has_deletion_timestamp()) slices.push_back(std::move(slice));
  }
  std::vector<EndpointPodPointer> pods = pods_.Select(*service);
  if (!service->spec().publish_not_ready_addresses()) DropStranded(key, pods);
  SlicePlan plan = PlanSlices(
      *service, pods, slices,
      [this](const std::string& name) {
        auto node = nodes_.Get(name);
        return node ? ZoneOf(*node) : std::string();
      },
      HintModeOf(*service) == HintMode::kTopology ? Shares() : ZoneShares(), max_endpoints_);
  const std::optional<WallTime> trigger = trigger_times_.Next(*service, pods);
  for (auto* written : {&plan.create, &plan.update}) {
    for (discoveryv1::EndpointSlice& slice : *written) SetTriggerTime(trigger, *slice.mutable_metadata());
  }
  Result<> applied = ApplySlicePlan(key, plan, api_.With(stop), tracker_);
  CountSliceSync(*service, plan, applied);
  if (!applied && !applied.error().Is(Code::kConflict) && !stop.stop_requested()) {
    events_.Record(*service, "Warning", "FailedToUpdateEndpointSlices",
                   "Error updating Endpoint Slices for Service " + key + ": " + applied.error().message());
  }
  if (!applied) return applied.error();
  totals_.Set(key, *service, plan, slices.size());
  TellHints(key, *service, plan);
  return Requeue{};
}

}  // namespace keelson::controllers
