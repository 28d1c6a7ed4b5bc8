// Short names of the messages of CSI and of the API's objects: inside of keelson::csi, `csi::v1` would name something
// else.
#pragma once

#include <map>
#include <string>

#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/types.h"
#include "lib/rpc/proto/csi.pb.h"

namespace keelson::csi::controller {

namespace v1 = ::csi::v1;
namespace storagev1 = ::keelson::api::storage::v1;

using Claim = corev1::PersistentVolumeClaim;
using Volume = corev1::PersistentVolume;
using Strings = google::protobuf::Map<std::string, std::string>;

}  // namespace keelson::csi::controller
