#include "csi/controller/capacity/capacity.h"

#include "csi/controller/model/class_parameters.h"
#include "lib/api/quantity.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

constexpr char kAll[] = "all";

std::string Size(const Volume& volume) {
  const auto found = volume.spec().capacity().find("storage");
  return found == volume.spec().capacity().end() ? "" : found->second.string();
}

bool IsSame(const StorageCapacity& one, const StorageCapacity& other) {
  const bool limited = one.has_maximum_volume_size();
  return api::Amount::Of(one.capacity()) == api::Amount::Of(other.capacity()) && one.has_capacity() &&
         limited == other.has_maximum_volume_size() &&
         (!limited ||
          api::Amount::Of(one.maximum_volume_size()) == api::Amount::Of(other.maximum_volume_size()));
}

// Sets the gauges. Each argument counts CSIStorageCapacity objects.
void SetGauges(const std::string& driver, size_t wanted, size_t present, size_t superfluous) {
  static metrics::Family& goal =
      metrics::Gauge("csistoragecapacities_desired_goal", "CSIStorageCapacity objects that ought to exist.",
                     {"driver_name"});
  static metrics::Family& current =
      metrics::Gauge("csistoragecapacities_desired_current",
                     "CSIStorageCapacity objects that ought to exist, and do.", {"driver_name"});
  static metrics::Family& obsolete = metrics::Gauge(
      "csistoragecapacities_obsolete", "CSIStorageCapacity objects that are to be deleted.", {"driver_name"});
  goal.With({driver}).Set(static_cast<double>(wanted));
  current.With({driver}).Set(static_cast<double>(present));
  obsolete.With({driver}).Set(static_cast<double>(superfluous));
}

}  // namespace

Capacity::Capacity(const Environment& environment, CapacityOptions options)
    : Controller("capacities", environment),
      options_(std::move(options)),
      classes_(environment.informers.Get<storagev1::StorageClass>()),
      volumes_(environment.informers.Get<Volume>()),
      nodes_(environment.node.empty()
                 ? std::make_unique<TopologyNodes>(environment.informers, environment.driver.name(), "")
                 : nullptr) {
  classes_.AddHandler([this](const client::Change<storagev1::StorageClass>& change) {
    if (change.object().provisioner() == driver().name()) queue().AddAfter(kAll, options_.settle);
  });
  volumes_.AddHandler([this](const client::Change<Volume>& change) {
    // Space is taken or given back when a volume comes, goes or grows.
    const auto& source = change.object().spec().persistent_volume_source();
    if (source.csi().driver() != driver().name()) return;
    const bool grew =
        change.old_object && change.new_object && Size(*change.old_object) != Size(*change.new_object);
    if (!change.old_object || !change.new_object || grew) queue().AddAfter(kAll, options_.settle);
  });
  if (nodes_) nodes_->OnChange([this] { queue().AddAfter(kAll, options_.settle); });
  queue().Add(kAll);
}

std::vector<CapacitySlot> Capacity::Slots(const DriverInfo& info) const {
  std::vector<Segments> topologies;
  if (nodes_) {
    topologies = DistinctTopologies(nodes_->All());
  } else if (!info.node_topology.empty()) {
    topologies.push_back(info.node_topology);
  }
  std::vector<CapacitySlot> out;
  for (const auto& storage_class : classes_.List()) {
    if (storage_class->provisioner() != info.name) continue;
    if (!options_.immediate && storage_class->volume_binding_mode() != "WaitForFirstConsumer") continue;
    for (const Segments& segments : topologies) out.push_back({segments, storage_class->metadata().name()});
  }
  return out;
}

Result<CapacityAnswer> Capacity::Ask(const CapacitySlot& slot, std::stop_token stop) {
  const auto storage_class = classes_.Get(slot.storage_class);
  if (!storage_class) return Error(Code::kNotFound, "the class " + slot.storage_class + " is gone");
  KEELSON_ASSIGN_OR_RETURN(const ClassParameters parameters,
                           ReadClassParameters(storage_class->parameters(), options_.default_fs_type));
  v1::GetCapacityRequest request;
  *request.mutable_parameters() = parameters.driver;
  for (const auto& [key, value] : slot.segments) {
    (*request.mutable_accessible_topology()->mutable_segments())[key] = value;
  }
  KEELSON_ASSIGN_OR_RETURN(const auto reply, driver().GetCapacity(request, stop));
  CapacityAnswer out{reply.available_capacity(), std::nullopt};
  if (reply.has_maximum_volume_size()) out.maximum = reply.maximum_volume_size().value();
  return out;
}

Result<Requeue> Capacity::Reconcile(const std::string&, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  const std::string managed_by = ManagedBy(environment().node);
  const client::RestClient api = Api(stop);
  client::ListOptions mine;
  mine.label_selector =
      "csi.storage.k8s.io/drivername=" + info->name + ",csi.storage.k8s.io/managed-by=" + managed_by;
  KEELSON_ASSIGN_OR_RETURN(const std::vector<StorageCapacity> present,
                           api.List<StorageCapacity>(options_.ns, mine));
  const CapacityPlan plan = PlanCapacities(Slots(*info), present);
  const size_t goal = plan.kept.size() + plan.missing.size();
  size_t there = plan.kept.size();
  SetGauges(info->name, goal, there, plan.superfluous.size());
  for (const StorageCapacity& object : plan.superfluous) {
    const Result<> removed = api.Delete<StorageCapacity>(options_.ns, object.metadata().name());
    if (!removed && !removed.error().Is(Code::kNotFound)) {
      return removed.error().Wrap("delete a CSIStorageCapacity");
    }
  }
  SetGauges(info->name, goal, there, 0);
  // A class that the driver does not answer for holds up no other one. Its object stays as it was.
  Result<> first;
  auto failed = [&](const Error& error) {
    if (first) first = error;
  };
  for (const CapacitySlot& slot : plan.missing) {
    const Result<CapacityAnswer> answer = Ask(slot, stop);
    if (!answer) {
      failed(answer.error().Wrap("class " + slot.storage_class));
      continue;
    }
    const auto created = api.Create(MakeCapacity(slot, *answer, info->name, managed_by, options_.ns));
    if (!created) return created.error().Wrap("create a CSIStorageCapacity");
    SetGauges(info->name, goal, ++there, 0);
  }
  for (size_t i = 0; i < plan.kept.size(); ++i) {
    const Result<CapacityAnswer> answer = Ask(plan.kept_slots[i], stop);
    if (!answer) {
      failed(answer.error().Wrap("class " + plan.kept_slots[i].storage_class));
      continue;
    }
    StorageCapacity wanted = MakeCapacity(plan.kept_slots[i], *answer, info->name, managed_by, options_.ns);
    if (IsSame(plan.kept[i], wanted)) continue;
    *wanted.mutable_metadata() = plan.kept[i].metadata();
    const auto updated = api.Update(wanted);
    if (!updated) return updated.error().Wrap("update a CSIStorageCapacity");
  }
  if (!first) return first.error();
  return Requeue{options_.poll};
}

}  // namespace keelson::csi::controller
