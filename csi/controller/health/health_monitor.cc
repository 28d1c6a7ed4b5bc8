#include "csi/controller/health/health_monitor.h"

#include <map>

#include "lib/base/log.h"

namespace keelson::csi::controller {
namespace {

constexpr char kAll[] = "*";
constexpr char kAbnormal[] = "VolumeConditionAbnormal";
constexpr int kPage = 500;

}  // namespace

HealthMonitor::HealthMonitor(const Environment& environment, HealthOptions options)
    : Controller("volume-health", environment),
      options_(options),
      volumes_(environment.informers.Get<Volume>()) {
  volumes_.AddHandler([this](const client::Change<Volume>& change) {
    if (!change.new_object || change.new_object->status().phase() != "Bound") return;
    const bool was_bound = change.old_object && change.old_object->status().phase() == "Bound";
    const auto& source = change.new_object->spec().persistent_volume_source();
    if (!was_bound && source.csi().driver() == driver().name()) queue().Add(change.key);
  });
  queue().Add(kAll);
}

Result<Requeue> HealthMonitor::Reconcile(const std::string& key, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  const bool conditions = info->Can(Capability::VOLUME_CONDITION);
  const bool list = info->Can(Capability::LIST_VOLUMES);
  // A driver that comes back may be a new version.
  if (key == kAll) {
    if (!conditions || !list) return Requeue{options_.list_volumes};
    KEELSON_RETURN_IF_ERROR(Remember(stop));
    return CheckAll(stop);
  }
  if (!volumes_.Get(key)) return Requeue{};
  if (!conditions || list || !info->Can(Capability::GET_VOLUME)) return Requeue{options_.list_volumes};
  KEELSON_RETURN_IF_ERROR(Remember(stop));
  return CheckOne(key, *info, stop);
}

bool HealthMonitor::Ours(const Volume& volume, const DriverInfo& info) const {
  if (volume.spec().persistent_volume_source().csi().driver() != info.name ||
      volume.status().phase() != "Bound" || volume.metadata().has_deletion_timestamp()) {
    return false;
  }
  return environment().node.empty() || IsReachable(volume, info.node_topology);
}

Result<Requeue> HealthMonitor::CheckAll(std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  std::map<std::string, v1::VolumeCondition> conditions;
  v1::ListVolumesRequest request;
  request.set_max_entries(kPage);
  for (;;) {
    const auto reply = driver().ListVolumes(request, stop);
    if (!reply) return reply.error().Wrap("list the volumes of the driver");
    for (const auto& entry : reply->entries()) {
      if (entry.status().has_volume_condition()) {
        conditions[entry.volume().volume_id()] = entry.status().volume_condition();
      }
    }
    // A driver that repeats itself is not asked for ever.
    if (reply->next_token().empty() || reply->next_token() == request.starting_token()) break;
    request.set_starting_token(reply->next_token());
  }
  for (const auto& volume : volumes_.List()) {
    if (!Ours(*volume, *info)) continue;
    const auto found = conditions.find(volume->spec().persistent_volume_source().csi().volume_handle());
    if (found != conditions.end()) Tell(*volume, found->second);
  }
  return Requeue{options_.list_volumes};
}

Result<Requeue> HealthMonitor::CheckOne(const std::string& name, const DriverInfo& info,
                                        std::stop_token stop) {
  const auto volume = volumes_.Get(name);
  // A volume that is bound again comes again.
  if (!volume || !Ours(*volume, info)) return Requeue{};
  v1::ControllerGetVolumeRequest request;
  request.set_volume_id(volume->spec().persistent_volume_source().csi().volume_handle());
  const auto reply = driver().GetVolume(request, stop);
  if (!reply) return reply.error().Wrap("get the volume from the driver");
  if (reply->status().has_volume_condition()) Tell(*volume, reply->status().volume_condition());
  return Requeue{options_.volume};
}

void HealthMonitor::Tell(const Volume& volume, const v1::VolumeCondition& condition) {
  corev1::ObjectReference claim = volume.spec().claim_ref();
  claim.set_kind("PersistentVolumeClaim");
  claim.set_api_version("v1");
  claim.clear_resource_version();
  if (condition.abnormal()) {
    {
      MutexLock lock(mutex_);
      abnormal_->insert(claim.uid());
    }
    // Equal events are counted, and last.
    environment().events.Record(claim, "Warning", kAbnormal, condition.message());
    return;
  }
  MutexLock lock(mutex_);
  if (abnormal_->erase(claim.uid()) > 0) {
    environment().events.Record(claim, "Normal", "VolumeConditionNormal",
                                "The Volume returns to the healthy state");
  }
}

Result<> HealthMonitor::Remember(std::stop_token stop) {
  {
    MutexLock lock(mutex_);
    if (abnormal_) return {};
  }
  client::ListOptions told;
  told.field_selector = std::string("involvedObject.kind=PersistentVolumeClaim,reason=") + kAbnormal;
  KEELSON_ASSIGN_OR_RETURN(const auto events, Api(stop).List<corev1::Event>("", told));
  std::set<std::string> found;
  for (const corev1::Event& event : events) found.insert(event.involved_object().uid());
  MutexLock lock(mutex_);
  if (!abnormal_) abnormal_ = std::move(found);
  return {};
}

}  // namespace keelson::csi::controller
