#include "csi/controller/provisioner/deleter.h"

#include <fmt/format.h>

#include "csi/controller/model/names.h"
#include "csi/controller/model/secret_reference.h"
#include "csi/controller/provisioner/provision_metrics.h"
#include "lib/base/log.h"

namespace keelson::csi::controller {
namespace {

const std::string* Find(const google::protobuf::Map<std::string, std::string>& map, const char* key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

bool IsDue(const Volume& volume) {
  if (volume.metadata().has_deletion_timestamp() && !HasFinalizer(volume.metadata(), kProvisionerFinalizer)) {
    return false;  // deleted already, and kept by others' finalizers
  }
  return volume.status().phase() == "Released" &&
         volume.spec().persistent_volume_reclaim_policy() == "Delete";
}

}  // namespace

Deleter::Deleter(const Environment& environment)
    : Controller("volumes", environment),
      volumes_(environment.informers.Get<Volume>()),
      classes_(environment.informers.Get<storagev1::StorageClass>()) {
  const auto info = environment.driver.Info({});
  if (info && (*info)->Can(Capability::PUBLISH_UNPUBLISH_VOLUME)) {
    attachments_ = &environment.informers.Get<storagev1::VolumeAttachment>();
    // A volume that had to wait for its last attachment.
    attachments_->AddHandler([this](const client::Change<storagev1::VolumeAttachment>& change) {
      const std::string& name = change.object().spec().source().persistent_volume_name();
      if (!change.new_object && !name.empty()) queue().Add(name);
    });
  }
  volumes_.AddHandler([this](const client::Change<Volume>& change) {
    if (change.new_object && Ours(*change.new_object)) queue().Add(change.key);
  });
}

bool Deleter::Ours(const Volume& volume) const {
  const auto& annotations = volume.metadata().annotations();
  const auto& source = volume.spec().persistent_volume_source();
  // Volumes that have moved to CSI from Kubernetes' own drivers have no source that the driver could read.
  if (!source.has_csi() || source.csi().driver() != driver().name()) return false;
  const std::string* made_by = Find(annotations, kProvisionedBy);
  return !made_by || *made_by == driver().name();
}

Result<Requeue> Deleter::Reconcile(const std::string& key, std::stop_token stop) {
  const auto known = volumes_.Get(key);
  if (!known || !Ours(*known)) return Requeue{};
  if (!environment().node.empty()) {
    KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
    if (!IsReachable(*known, info->node_topology)) return Requeue{};
  }
  KEELSON_ASSIGN_OR_RETURN(const Volume kept, Protect(*known, stop));
  if (!IsDue(kept)) return Requeue{};
  // The cache may lag behind a volume that has found its claim again, has another policy, or is gone.
  Result<Volume> read = Api(stop).Get<Volume>("", key);
  if (!read && read.error().Is(Code::kNotFound)) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(const Volume volume, std::move(read));
  if (volume.metadata().uid() != known->metadata().uid() || !IsDue(volume)) return Requeue{};
  const SteadyTime begun = environment().clock.SteadyNow();
  const Result<> deleted = Delete(volume, stop);
  const std::chrono::duration<double> took = environment().clock.SteadyNow() - begun;
  if (deleted || !stop.stop_requested()) CountDeletion(volume, deleted.has_value(), took.count());
  if (!deleted) {
    if (!stop.stop_requested()) {
      environment().events.Record(volume, "Warning", "VolumeFailedDelete", deleted.error().message());
    }
    return deleted.error();
  }
  const client::RestClient api = Api(stop);
  const Result<> removed = api.Delete<Volume>("", key,
                                              {.grace_period_seconds = {},
                                               .propagation_policy = "",
                                               .uid = volume.metadata().uid(),
                                               .resource_version = ""});
  if (!removed && !removed.error().Is(Code::kNotFound)) return removed.error().Wrap("delete the object");
  auto freed = client::UpdateWithRetry<Volume>(api, "", key, "", [&](Volume& live) -> Result<bool> {
    return live.metadata().uid() == volume.metadata().uid() &&
           DropFinalizer(*live.mutable_metadata(), kProvisionerFinalizer);
  });
  if (!freed && !freed.error().Is(Code::kNotFound)) return freed.error().Wrap("remove the finalizer");
  return Requeue{};
}

Result<Volume> Deleter::Protect(const Volume& volume, std::stop_token stop) {
  const bool deletes = volume.spec().persistent_volume_reclaim_policy() == "Delete";
  const bool has = HasFinalizer(volume.metadata(), kProvisionerFinalizer);
  const bool add =
      deletes && !has && !volume.metadata().has_deletion_timestamp() && volume.status().phase() == "Bound";
  const bool remove = !deletes && has;
  if (!add && !remove) return volume;
  return client::UpdateWithRetry<Volume>(
      Api(stop), "", volume.metadata().name(), "", [&](Volume& live) -> Result<bool> {
        // By the state of now: a policy may have changed since.
        const bool live_deletes = live.spec().persistent_volume_reclaim_policy() == "Delete";
        if (live.metadata().uid() != volume.metadata().uid() || live_deletes != deletes) return false;
        if (remove) return DropFinalizer(*live.mutable_metadata(), kProvisionerFinalizer);
        if (live.metadata().has_deletion_timestamp() ||
            HasFinalizer(live.metadata(), kProvisionerFinalizer)) {
          return false;
        }
        live.mutable_metadata()->add_finalizers(kProvisionerFinalizer);
        return true;
      });
}

Result<Strings> Deleter::Secrets(const Volume& volume, std::stop_token stop) {
  corev1::SecretReference reference;
  const auto& annotations = volume.metadata().annotations();
  const std::string* name = Find(annotations, kDeletionSecretName);
  const std::string* ns = Find(annotations, kDeletionSecretNamespace);
  if (name && ns) {
    reference.set_name(*name);
    reference.set_namespace_(*ns);
  } else if (const auto storage_class = classes_.Get(volume.spec().storage_class_name())) {
    const auto& claim = volume.spec().claim_ref();
    KEELSON_ASSIGN_OR_RETURN(const auto found,
                             ResolveSecret(SecretUse::kProvisioner, storage_class->parameters(),
                                           {volume.metadata().name(), claim.namespace_(), claim.name(), {}}));
    if (found) reference = *found;
  }
  if (reference.name().empty() || reference.namespace_().empty()) return Strings();
  Result<Strings> secrets = ReadSecret(Api(stop), reference);
  if (secrets) return secrets;
  if (!secrets.error().Is(Code::kNotFound)) return secrets;
  // It may have gone before the volume; the driver decides.
  log::Warn("The secret to delete a volume with is gone", {{"volume", volume.metadata().name()}});
  return Strings();
}

Result<> Deleter::Delete(const Volume& volume, std::stop_token stop) {
  if (attachments_) {
    for (const auto& attachment : attachments_->List()) {
      if (attachment->spec().source().persistent_volume_name() == volume.metadata().name()) {
        return Error(Code::kConflict, fmt::format("persistentvolume {} is still attached to node {}",
                                                  volume.metadata().name(), attachment->spec().node_name()));
      }
    }
  }
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  if (!info->Can(Capability::CREATE_DELETE_VOLUME)) {
    return Error(Code::kInvalid,
                 "CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME "
                 "capability is not reported");
  }
  v1::DeleteVolumeRequest request;
  request.set_volume_id(volume.spec().persistent_volume_source().csi().volume_handle());
  KEELSON_ASSIGN_OR_RETURN(*request.mutable_secrets(), Secrets(volume, stop));
  return driver().DeleteVolume(request, stop);
}

}  // namespace keelson::csi::controller
