// Larger volumes.
#pragma once

#include "csi/local/model/wire.h"
#include "csi/local/volumes/context.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// Grows the volume's file and record into the range; changes nothing for one that fits. A volume never shrinks. The caller
// holds its lock. kInvalid: the range contradicts itself. kGone: it does not fit, or there is no room.
Result<VolumeRecord> GrowVolume(Context& context, VolumeRecord record, const v1::CapacityRange& range);

}  // namespace keelson::csi::local
