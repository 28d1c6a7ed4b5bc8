#include "controlplane/controllers/volumebinding/volumes.h"

#include <filesystem>

#include <fmt/format.h>

#include "controlplane/controllers/volumebinding/binding.h"
#include "controlplane/controllers/volumebinding/claims.h"
#include "controlplane/controllers/volumebinding/metrics.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"

namespace keelson::controllers {

VolumeBinder::VolumeBinder(client::RestClient api, client::InformerFactory& informers,
                           client::EventRecorder& events, Clock& clock)
    : Controller("volumes", clock),
      api_(std::move(api)),
      events_(events),
      claims_(informers.Get<PersistentVolumeClaim>()),
      volumes_(informers.Get<PersistentVolume>()) {
  IndexVolumes(volumes_);
  volumes_.AddHandler([this](const client::Change<PersistentVolume>& change) {
    CountVolume(change.old_object.get(), change.new_object.get());
    if (change.new_object) queue().Add(change.key);
  });
  claims_.AddHandler([this](const client::Change<PersistentVolumeClaim>& change) {
    if (!change.object().spec().volume_name().empty()) queue().Add(change.object().spec().volume_name());
    for (const auto& volume : volumes_.ByIndex(kByClaimRef, change.key)) queue().Add(api::KeyOf(*volume));
  });
}

Result<Requeue> VolumeBinder::Reconcile(const std::string& key, std::stop_token stop) {
  auto volume = volumes_.Get(key);
  if (!volume) return Requeue{};
  Result<> result = Sync(api_.With(stop), *volume);
  if (!result && !result.error().Is(Code::kNotFound)) return result.error();
  return Requeue{};
}

Result<std::shared_ptr<const PersistentVolumeClaim>> VolumeBinder::ClaimBehind(
    const client::RestClient& api, const PersistentVolume& volume) {
  const corev1::ObjectReference& ref = volume.spec().claim_ref();
  auto claim = claims_.Get(ref.namespace_(), ref.name());
  if (claim && claim->metadata().uid() == ref.uid()) return claim;
  // The API may be newer than the store: check it before releasing a volume.
  Result<PersistentVolumeClaim> live = api.Get<PersistentVolumeClaim>(ref.namespace_(), ref.name());
  if (!live && !live.error().Is(Code::kNotFound)) return live.error();
  if (!live || live->metadata().uid() != ref.uid()) return std::shared_ptr<const PersistentVolumeClaim>();
  return std::make_shared<const PersistentVolumeClaim>(*std::move(live));
}

Result<> VolumeBinder::Sync(const client::RestClient& api, PersistentVolume volume) {
  if (!volume.spec().has_claim_ref() || volume.spec().claim_ref().uid().empty()) {
    KEELSON_RETURN_IF_ERROR(SetPhase(api, volume, "Available"));
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(auto claim, ClaimBehind(api, volume));
  if (!claim) return Release(api, std::move(volume));
  const std::string& bound_to = claim->spec().volume_name();
  if (bound_to == volume.metadata().name()) {
    KEELSON_RETURN_IF_ERROR(SetPhase(api, volume, "Bound"));
    return {};
  }
  if (bound_to.empty()) {  // ClaimBinder completes the binding
    if (SameMode(volume, *claim)) return {};
    events_.Record(volume, "Warning", "VolumeMismatch",
                   fmt::format("Cannot bind PersistentVolume to requested PersistentVolumeClaim \"{}\" due "
                               "to incompatible volumeMode.",
                               claim->metadata().name()));
    events_.Record(*claim, "Warning", "VolumeMismatch",
                   fmt::format("Cannot bind PersistentVolume \"{}\" to requested PersistentVolumeClaim due "
                               "to incompatible volumeMode.",
                               volume.metadata().name()));
    return {};
  }
  // Provisioned for this claim, which is now bound to another volume: it is not needed.
  if (HasAnnotation(volume.metadata(), kProvisionedBy) &&
      volume.spec().persistent_volume_reclaim_policy() == "Delete") {
    return Release(api, std::move(volume));
  }
  return Unbind(api, std::move(volume));
}

// Deletes a hostPath directory, for tests on a single node. Only below /tmp, as upstream's deleter.
Result<> VolumeBinder::DeleteHostPath(const client::RestClient& api, PersistentVolume& volume) {
  const metav1::ObjectMeta& meta = volume.metadata();
  const std::string& path = volume.spec().persistent_volume_source().host_path().path();
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  if (!normal.string().starts_with("/tmp/") || normal == "/tmp/") {
    return Fail(api, volume, "VolumeFailedDelete",
                fmt::format("host_path deleter only supports /tmp/.+ but received provided {}", path));
  }
  if (Result<> removed = RemoveTree(normal.string()); !removed) {
    return Fail(api, volume, "VolumeFailedDelete", removed.error().message());
  }
  Result<> deleted = api.Delete<PersistentVolume>("", meta.name(), {.uid = meta.uid()});
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete volume");
  return {};
}

Result<> VolumeBinder::Release(const client::RestClient& api, PersistentVolume volume) {
  if (volume.status().phase() != "Failed") {
    KEELSON_RETURN_IF_ERROR(SetPhase(api, volume, "Released"));
  }
  // A migrated volume is reclaimed by its CSI driver.
  if (HasAnnotation(volume.metadata(), kMigratedTo)) return {};
  const std::string& policy = volume.spec().persistent_volume_reclaim_policy();
  if (policy == "Recycle") {
    return Fail(api, volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!");
  }
  if (policy != "Delete") return {};
  auto made_by = volume.metadata().annotations().find(kProvisionedBy);
  if (made_by != volume.metadata().annotations().end() && !ExternalProvisioner(made_by->second).empty()) {
    return {};  // the provisioner sees the phase and deletes the volume
  }
  if (volume.metadata().has_deletion_timestamp()) return {};
  if (volume.spec().persistent_volume_source().has_host_path()) return DeleteHostPath(api, volume);
  return Fail(api, volume, "VolumeFailedDelete",
              fmt::format("error getting deleter volume plugin for volume \"{}\": no deletable volume plugin "
                          "matched",
                          volume.metadata().name()));
}

Result<> VolumeBinder::Fail(const client::RestClient& api, PersistentVolume& volume, const char* reason,
                            const std::string& message) {
  KEELSON_ASSIGN_OR_RETURN(bool changed, SetPhase(api, volume, "Failed", message));
  if (changed) events_.Record(volume, "Warning", reason, message);
  return {};
}

}  // namespace keelson::controllers
