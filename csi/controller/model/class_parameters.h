// Parameters of a StorageClass: what is meant for the provisioner, and what goes on to the driver. Pure.
#pragma once

#include <string>

#include "csi/controller/model/wire.h"
#include "lib/base/error.h"

namespace keelson::csi::controller {

struct ClassParameters {
  std::string fs_type;  // csi.storage.k8s.io/fstype, else fstype, else `default_fs_type`
  Strings driver;       // for the driver: without the prefix csi.storage.k8s.io/
};

// kInvalid, in external-provisioner's words: both spellings of fstype, an unknown key with the prefix.
Result<ClassParameters> ReadClassParameters(const Strings& parameters, const std::string& default_fs_type);

}  // namespace keelson::csi::controller
