// Deletes released volumes of one driver with policy Delete: first in the driver, then the object.
//
// Such volumes keep external-provisioner's finalizer from the time that they are bound, so that an object which somebody
// deletes earlier still leads to DeleteVolume when its claim is gone.
#pragma once

#include "csi/controller/common/controller.h"

namespace keelson::csi::controller {

class Deleter : public Controller {
 public:
  explicit Deleter(const Environment& environment);
  // Key: the name of a volume.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  bool Ours(const Volume& volume) const;
  // Adds or removes the finalizer as the volume's policy wants it. Returns the volume as it is then.
  Result<Volume> Protect(const Volume& volume, std::stop_token stop);
  Result<> Delete(const Volume& volume, std::stop_token stop);
  Result<Strings> Secrets(const Volume& volume, std::stop_token stop);

  client::Informer<Volume>& volumes_;
  client::Informer<storagev1::StorageClass>& classes_;
  client::Informer<storagev1::VolumeAttachment>* attachments_ = nullptr;  // null: the driver does not attach
};

}  // namespace keelson::csi::controller
