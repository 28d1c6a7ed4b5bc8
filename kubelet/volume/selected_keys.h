// Keys of ConfigMaps and Secrets as files: all keys under their own names, or the listed ones under the listed paths.
#pragma once

#include <string>

#include "kubelet/volume/atomic_writer.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

using KeyItems = google::protobuf::RepeatedPtrField<corev1::KeyToPath>;

inline mode_t ModeOf(bool has, int32_t mode, mode_t otherwise) {
  return has ? static_cast<mode_t>(mode) : otherwise;
}

// kInvalid: a listed key does not exist, and is not optional.
Result<> AddConfigMap(const corev1::ConfigMap& map, const KeyItems& items, mode_t mode, bool optional,
                      Payload& out);
Result<> AddSecret(const corev1::Secret& secret, const KeyItems& items, mode_t mode, bool optional,
                   Payload& out);

}  // namespace keelson::kubelet
