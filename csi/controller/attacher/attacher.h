// Carries out VolumeAttachments of one driver, as external-attacher does: ControllerPublishVolume for new ones,
// ControllerUnpublishVolume for deleted ones. The attachments of a driver without PUBLISH_UNPUBLISH_VOLUME are attached
// at once.
//
// An attachment has the finalizer external-attacher/DRIVER before the driver is called, and loses it when the volume is
// detached; a failed or killed attempt is repeated, as both calls are idempotent.
#pragma once

#include "csi/controller/common/controller.h"

namespace keelson::csi::controller {

using VolumeAttachment = storagev1::VolumeAttachment;

// external-attacher/disk-example-com for drivers with "/" in the name: that is replaced by "-".
std::string AttacherFinalizer(const std::string& driver);

class Attacher : public Controller {
 public:
  Attacher(const Environment& environment, std::string default_fs_type);
  // Key: the name of a VolumeAttachment.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  // The volume with what the call needs.
  struct Target {
    std::string node_id;
    Volume volume;  // of an inline volume: its spec alone
    Strings secrets;
  };

  bool Ours(const VolumeAttachment& attachment) const;
  // `detach`: a node that has gone may be known from the attachment alone.
  Result<Target> Find(const VolumeAttachment& attachment, bool detach, std::stop_token stop);
  Result<std::string> NodeId(const VolumeAttachment& attachment, bool detach) const;
  Result<> Attach(const VolumeAttachment& attachment, const DriverInfo& info, std::stop_token stop);
  Result<> Detach(const VolumeAttachment& attachment, std::stop_token stop);
  // Adds finalizers to the volume and to the attachment. False: it is attached, which the cache does not know yet.
  Result<bool> Prepare(const VolumeAttachment& attachment, const Target& target, std::stop_token stop);
  Result<> SetAttached(const VolumeAttachment& attachment, const Strings& context, std::stop_token stop);
  void SaveError(const VolumeAttachment& attachment, bool detach, const Error& error, std::stop_token stop);

  const std::string default_fs_type_, finalizer_;
  client::Informer<VolumeAttachment>& attachments_;
  client::Informer<Volume>& volumes_;
  client::Informer<storagev1::CSINode>& nodes_;
};

// Removes the attacher's finalizer from deleted volumes that no VolumeAttachment names.
class AttachedVolumes : public Controller {
 public:
  explicit AttachedVolumes(const Environment& environment);
  // Key: the name of a PersistentVolume.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  const std::string finalizer_;
  client::Informer<VolumeAttachment>& attachments_;
  client::Informer<Volume>& volumes_;
};

}  // namespace keelson::csi::controller
