#include "csi/controller/attacher/attacher.h"

#include <algorithm>

#include <fmt/format.h>

#include "csi/controller/model/capability.h"
#include "csi/controller/model/names.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"

namespace keelson::csi::controller {
namespace {

constexpr char kByVolume[] = "volume";

std::vector<std::string> VolumeIndex(const VolumeAttachment& attachment) {
  return {attachment.spec().source().persistent_volume_name()};
}

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

}  // namespace

std::string AttacherFinalizer(const std::string& driver) {
  std::string name = driver;
  std::replace(name.begin(), name.end(), '/', '-');
  return "external-attacher/" + name;
}

Attacher::Attacher(const Environment& environment, std::string default_fs_type)
    : Controller("attachments", environment),
      default_fs_type_(std::move(default_fs_type)),
      finalizer_(AttacherFinalizer(environment.driver.name())),
      attachments_(environment.informers.Get<VolumeAttachment>()),
      volumes_(environment.informers.Get<Volume>()),
      nodes_(environment.informers.Get<storagev1::CSINode>()) {
  attachments_.AddIndex(kByVolume, VolumeIndex);
  attachments_.AddHandler([this](const client::Change<VolumeAttachment>& change) {
    if (change.new_object && Ours(*change.new_object)) queue().Add(change.key);
  });
}

bool Attacher::Ours(const VolumeAttachment& attachment) const {
  if (attachment.spec().attacher() != driver().name()) return false;
  return environment().node.empty() || attachment.spec().node_name() == environment().node;
}

Result<Requeue> Attacher::Reconcile(const std::string& key, std::stop_token stop) {
  const auto attachment = attachments_.Get(key);
  if (!attachment || !Ours(*attachment)) return Requeue{};
  const bool detach = attachment->metadata().has_deletion_timestamp();
  if (detach ? !HasFinalizer(attachment->metadata(), finalizer_) : attachment->status().attached()) {
    return Requeue{};
  }
  KEELSON_ASSIGN_OR_RETURN(const auto info, driver().Info(stop));
  if (!detach && !info->Can(Capability::PUBLISH_UNPUBLISH_VOLUME)) {
    KEELSON_RETURN_IF_ERROR(SetAttached(*attachment, {}, stop));
    return Requeue{};
  }
  const Result<> done = detach ? Detach(*attachment, stop) : Attach(*attachment, *info, stop);
  if (done) return Requeue{};
  if (!stop.stop_requested()) SaveError(*attachment, detach, done.error(), stop);
  return done.error().Wrap(detach ? "failed to detach" : "failed to attach");
}

Result<std::string> Attacher::NodeId(const VolumeAttachment& attachment, bool detach) const {
  const std::string& name = attachment.spec().node_name();
  const auto node = nodes_.Get(name);
  if (node) {
    for (const auto& one : node->spec().drivers()) {
      if (one.name() == driver().name()) return one.node_id();
    }
  }
  const auto& annotations = attachment.metadata().annotations();
  const auto known = annotations.find(kNodeId);
  if (detach && known != annotations.end()) return known->second;
  return Error(Code::kUnavailable,
               node ? fmt::format("CSINode {} does not contain driver {}", name, driver().name())
                    : fmt::format("CSINode {} does not exist", name));
}

Result<Attacher::Target> Attacher::Find(const VolumeAttachment& attachment, bool detach,
                                        std::stop_token stop) {
  const auto& source = attachment.spec().source();
  Target out;
  if (!source.persistent_volume_name().empty()) {
    if (source.has_inline_volume_spec()) {
      return Wrong("both InlineCSIVolumeSource and PersistentVolumeName specified in VA source");
    }
    const auto volume = volumes_.Get(source.persistent_volume_name());
    if (!volume) {
      return Error(Code::kNotFound,
                   fmt::format("persistentvolume {} not found", JsonQuoted(source.persistent_volume_name())));
    }
    if (!detach && volume->metadata().has_deletion_timestamp()) {
      return Wrong(
          fmt::format("PersistentVolume {} is marked for deletion", JsonQuoted(volume->metadata().name())));
    }
    out.volume = *volume;
  } else if (source.has_inline_volume_spec()) {
    *out.volume.mutable_spec() = source.inline_volume_spec();
  } else {
    return Wrong("neither InlineCSIVolumeSource nor PersistentVolumeName specified in VA source");
  }
  const auto& csi = out.volume.spec().persistent_volume_source().csi();
  if (csi.driver() != driver().name()) {
    return Wrong(fmt::format("the volume is of driver {}, the attachment of {}", JsonQuoted(csi.driver()),
                             JsonQuoted(driver().name())));
  }
  if (csi.volume_handle().empty()) return Wrong("the volume has no handle");
  KEELSON_ASSIGN_OR_RETURN(out.node_id, NodeId(attachment, detach));
  if (csi.has_controller_publish_secret_ref()) {
    KEELSON_ASSIGN_OR_RETURN(out.secrets, ReadSecret(Api(stop), csi.controller_publish_secret_ref()));
  }
  return out;
}

Result<bool> Attacher::Prepare(const VolumeAttachment& attachment, const Target& target,
                               std::stop_token stop) {
  const client::RestClient api = Api(stop);
  const std::string& volume = target.volume.metadata().name();
  if (!volume.empty() && !HasFinalizer(target.volume.metadata(), finalizer_)) {
    auto kept = client::UpdateWithRetry<Volume>(api, "", volume, "", [&](Volume& live) -> Result<bool> {
      if (HasFinalizer(live.metadata(), finalizer_)) return false;
      if (live.metadata().has_deletion_timestamp()) {
        return Wrong(fmt::format("PersistentVolume {} is marked for deletion", JsonQuoted(volume)));
      }
      live.mutable_metadata()->add_finalizers(finalizer_);
      return true;
    });
    if (!kept) return kept.error().Wrap("could not add PersistentVolume finalizer");
  }
  auto prepared = client::UpdateWithRetry<VolumeAttachment>(
      api, "", attachment.metadata().name(), "", [&](VolumeAttachment& live) -> Result<bool> {
        if (live.metadata().uid() != attachment.metadata().uid()) {
          return Error(Code::kConflict, "the attachment was replaced");
        }
        if (live.metadata().has_deletion_timestamp()) {
          return Error(Code::kConflict, "the attachment is being deleted");
        }
        auto& annotations = *live.mutable_metadata()->mutable_annotations();
        const auto known = annotations.find(kNodeId);
        const bool complete = HasFinalizer(live.metadata(), finalizer_) && known != annotations.end() &&
                              known->second == target.node_id;
        if (complete) return false;
        annotations[kNodeId] = target.node_id;
        if (!HasFinalizer(live.metadata(), finalizer_)) live.mutable_metadata()->add_finalizers(finalizer_);
        return true;
      });
  if (!prepared) return prepared.error().Wrap("could not save VolumeAttachment");
  return !prepared->status().attached();
}

Result<> Attacher::Attach(const VolumeAttachment& attachment, const DriverInfo& info, std::stop_token stop) {
  // As much as possible is checked before the finalizer, which would keep the attachment.
  KEELSON_ASSIGN_OR_RETURN(Target target, Find(attachment, false, stop));
  auto& csi = *target.volume.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
  if (csi.fs_type().empty()) csi.set_fs_type(default_fs_type_);
  v1::ControllerPublishVolumeRequest request;
  KEELSON_ASSIGN_OR_RETURN(*request.mutable_volume_capability(),
                           VolumeCapability(target.volume, info.Can(Capability::SINGLE_NODE_MULTI_WRITER)));
  request.set_volume_id(csi.volume_handle());
  request.set_node_id(target.node_id);
  request.set_readonly(csi.read_only() && info.Can(Capability::PUBLISH_READONLY));
  *request.mutable_secrets() = target.secrets;
  *request.mutable_volume_context() = csi.volume_attributes();
  KEELSON_ASSIGN_OR_RETURN(const bool needed, Prepare(attachment, target, stop));
  if (!needed) return {};
  KEELSON_ASSIGN_OR_RETURN(const auto reply, driver().Publish(request, stop));
  return SetAttached(attachment, reply.publish_context(), stop);
}

Result<> Attacher::SetAttached(const VolumeAttachment& attachment, const Strings& context,
                               std::stop_token stop) {
  auto written = client::UpdateWithRetry<VolumeAttachment>(
      Api(stop), "", attachment.metadata().name(), "status", [&](VolumeAttachment& live) -> Result<bool> {
        if (live.metadata().uid() != attachment.metadata().uid()) return false;
        auto& status = *live.mutable_status();
        status.set_attached(true);
        *status.mutable_attachment_metadata() = context;
        status.clear_attach_error();
        return true;
      });
  if (written || written.error().Is(Code::kNotFound)) return {};
  return written.error().Wrap("failed to mark as attached");
}

Result<> Attacher::Detach(const VolumeAttachment& attachment, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const Target target, Find(attachment, true, stop));
  v1::ControllerUnpublishVolumeRequest request;
  request.set_volume_id(target.volume.spec().persistent_volume_source().csi().volume_handle());
  request.set_node_id(target.node_id);
  *request.mutable_secrets() = target.secrets;
  KEELSON_RETURN_IF_ERROR(driver().Unpublish(request, stop));
  const std::string& name = attachment.metadata().name();
  const client::RestClient api = Api(stop);
  auto is_it = [&](const VolumeAttachment& live) {
    return live.metadata().uid() == attachment.metadata().uid();
  };
  auto marked = client::UpdateWithRetry<VolumeAttachment>(
      api, "", name, "status", [&](VolumeAttachment& live) -> Result<bool> {
        if (!is_it(live)) return false;
        live.mutable_status()->set_attached(false);
        live.mutable_status()->clear_detach_error();
        live.mutable_status()->clear_attachment_metadata();
        return true;
      });
  if (!marked && !marked.error().Is(Code::kNotFound)) {
    return marked.error().Wrap("could not mark as detached");
  }
  auto freed = client::UpdateWithRetry<VolumeAttachment>(
      api, "", name, "", [&](VolumeAttachment& live) -> Result<bool> {
        return is_it(live) && DropFinalizer(*live.mutable_metadata(), finalizer_);
      });
  if (!freed && !freed.error().Is(Code::kNotFound)) return freed.error().Wrap("could not mark as detached");
  return {};
}

void Attacher::SaveError(const VolumeAttachment& attachment, bool detach, const Error& error,
                         std::stop_token stop) {
  auto saved = client::UpdateWithRetry<VolumeAttachment>(
      Api(stop), "", attachment.metadata().name(), "status", [&](VolumeAttachment& live) -> Result<bool> {
        if (live.metadata().uid() != attachment.metadata().uid()) return false;
        auto& told = detach ? *live.mutable_status()->mutable_detach_error()
                            : *live.mutable_status()->mutable_attach_error();
        // Each write wakes the attach-detach controller: the same words again are no news.
        if (told.message() == error.message()) return false;
        told.set_message(error.message());
        *told.mutable_time() = api::ToTime(environment().clock.Now());
        return true;
      });
  if (!saved && !saved.error().Is(Code::kNotFound)) {
    log::Warn("The error of an attachment cannot be saved",
              {{"attachment", attachment.metadata().name()}, {"err", saved.error()}});
  }
}

AttachedVolumes::AttachedVolumes(const Environment& environment)
    : Controller("attached-volumes", environment),
      finalizer_(AttacherFinalizer(environment.driver.name())),
      attachments_(environment.informers.Get<VolumeAttachment>()),
      volumes_(environment.informers.Get<Volume>()) {
  attachments_.AddIndex(kByVolume, VolumeIndex);
  attachments_.AddHandler([this](const client::Change<VolumeAttachment>& change) {
    const std::string& volume = change.object().spec().source().persistent_volume_name();
    if (!change.new_object && !volume.empty()) queue().Add(volume);
  });
  volumes_.AddHandler([this](const client::Change<Volume>& change) {
    if (change.new_object && change.new_object->metadata().has_deletion_timestamp()) queue().Add(change.key);
  });
}

Result<Requeue> AttachedVolumes::Reconcile(const std::string& key, std::stop_token stop) {
  const auto volume = volumes_.Get(key);
  if (!volume || !volume->metadata().has_deletion_timestamp() ||
      !HasFinalizer(volume->metadata(), finalizer_) || !attachments_.ByIndex(kByVolume, key).empty()) {
    return Requeue{};
  }
  auto freed = client::UpdateWithRetry<Volume>(Api(stop), "", key, "", [&](Volume& live) -> Result<bool> {
    return live.metadata().uid() == volume->metadata().uid() &&
           DropFinalizer(*live.mutable_metadata(), finalizer_);
  });
  if (!freed && !freed.error().Is(Code::kNotFound)) return freed.error().Wrap("remove the finalizer");
  return Requeue{};
}

}  // namespace keelson::csi::controller
