// Flags of upstream's kubelet that this one takes and that change nothing here
// (lib/component/flags_without_effect.h). docs/kubelet.md has the table. Internal to this folder.
#pragma once

#include "lib/component/flags_without_effect.h"

namespace keelson::kubelet {

component::FlagsWithoutEffect FlagsWithoutEffect();

}  // namespace keelson::kubelet
