// Flags of Kubernetes' own kube-apiserver, kube-controller-manager and kube-scheduler that have no
// counterpart here (lib/component/flags_without_effect.h). docs/flags.md has the same table, for people.
#pragma once

#include "lib/component/flags_without_effect.h"

namespace keelson::controlplane {

component::FlagsWithoutEffect FlagsWithoutEffect();

}  // namespace keelson::controlplane
