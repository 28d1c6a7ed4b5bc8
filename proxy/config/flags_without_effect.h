// Flags of upstream's kube-proxy that this one takes and that change nothing here
// (lib/component/flags_without_effect.h). docs/services.md has the table.
#pragma once

#include "lib/component/flags_without_effect.h"

namespace keelson::proxy {

component::FlagsWithoutEffect FlagsWithoutEffect();

}  // namespace keelson::proxy
