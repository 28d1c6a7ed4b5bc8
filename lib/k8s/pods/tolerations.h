// Taints of nodes and tolerations of pods.
#pragma once

#include <string_view>

#include "lib/api/types.h"

namespace keelson::k8s {

inline constexpr std::string_view kNoSchedule = "NoSchedule";
inline constexpr std::string_view kPreferNoSchedule = "PreferNoSchedule";
inline constexpr std::string_view kNoExecute = "NoExecute";

using Taints = google::protobuf::RepeatedPtrField<corev1::Taint>;
using Tolerations = google::protobuf::RepeatedPtrField<corev1::Toleration>;

bool Tolerates(const corev1::Toleration& toleration, const corev1::Taint& taint);
bool Tolerates(const Tolerations& tolerations, const corev1::Taint& taint);
// The first taint with effect NoSchedule or NoExecute that is not tolerated, or null.
const corev1::Taint* FindUntolerated(const Taints& taints, const Tolerations& tolerations);
// The first taint with this effect that is not tolerated, or null.
const corev1::Taint* FindUntolerated(const Taints& taints, const Tolerations& tolerations,
                                     std::string_view effect);
// Same key and effect.
bool SameTaint(const corev1::Taint& a, const corev1::Taint& b);
// Adds `toleration` unless an equivalent one is present. True: it was added.
bool AddToleration(Tolerations& tolerations, const corev1::Toleration& toleration);

}  // namespace keelson::k8s
