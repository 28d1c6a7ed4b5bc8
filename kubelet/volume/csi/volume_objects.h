// What calls to a driver need of the API: CSIDriver, VolumeAttachment, Secrets and tokens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kubelet/volume/csi/volume_source.h"
#include "kubelet/volume/token_cache.h"

namespace keelson::kubelet::csi {

class VolumeObjects {  // thread safe
 public:
  VolumeObjects(ObjectSource& objects, Clock& clock) : objects_(objects), tokens_(objects, clock) {}

  // Null: there is no CSIDriver object, which is optional. An error: not known now.
  Result<std::shared_ptr<const CsiDriver>> Driver(const std::string& name);
  // VolumeAttachment.status.attachmentMetadata of an attached volume; empty for one that is not to be attached.
  Result<Values> PublishContext(const CsiDriver* driver, const VolumeSource& source, const std::string& node);
  // Whether the driver could not attach the volume since the node has too many; only of drivers that let the number
  // change (CSIDriver.spec.nodeAllocatableUpdatePeriodSeconds).
  bool IsExhausted(const VolumeSource& source, const std::string& node);
  // The Secret's data; empty without a reference. `field`: NodeStageSecretRef, ... for the error.
  Result<Values> Secret(const std::optional<SecretRef>& ref, const char* field);
  // TokensJson of the tokens that the driver wants; nullopt: it wants none.
  Result<std::optional<std::string>> Tokens(const CsiDriver* driver, const corev1::Pod& pod);
  void ForgetPod(const std::string& uid) { tokens_.ForgetPod(uid); }

 private:
  ObjectSource& objects_;
  TokenCache tokens_;
};

}  // namespace keelson::kubelet::csi
