// The identity of a StatefulSet's pods: names, labels, hostnames and claims by ordinal. Pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::controllers {

using PodPointer = std::shared_ptr<const corev1::Pod>;
using PodPointers = std::vector<PodPointer>;

inline constexpr char kPodNameLabel[] = "statefulset.kubernetes.io/pod-name";
inline constexpr char kPodIndexLabel[] = "apps.kubernetes.io/pod-index";

int32_t FirstOrdinal(const appsv1::StatefulSet& set);
// True when the set wants a pod with this ordinal.
bool InRange(const appsv1::StatefulSet& set, int32_t ordinal);
// The ordinal in the pod's name: 3 for "web-3"; nullopt for other names, including "web-03".
std::optional<int32_t> OrdinalOf(const appsv1::StatefulSet& set, const corev1::Pod& pod);
std::string PodNameAt(const appsv1::StatefulSet& set, int32_t ordinal);
std::string ClaimNameAt(const appsv1::StatefulSet& set, const corev1::PersistentVolumeClaim& source,
                        int32_t ordinal);

// `set` must have the template of the revision `revision`.
corev1::Pod NewPodAt(const appsv1::StatefulSet& set, int32_t ordinal, const std::string& revision);
// The claims of one pod, in the order of the templates, without owner references.
std::vector<corev1::PersistentVolumeClaim> ClaimsAt(const appsv1::StatefulSet& set, int32_t ordinal);

bool HasIdentity(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal);
bool HasStorage(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal);
// Corrects labels and volumes.
void Mend(const appsv1::StatefulSet& set, int32_t ordinal, corev1::Pod& pod);

// Sets the claim's owner references by persistentVolumeClaimRetentionPolicy: the set with whenDeleted Delete,
// the pod with whenScaled Delete when the pod is condemned. Returns whether anything changed. Does not touch
// a claim that another controller owns.
bool UpdateOwners(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal,
                  corev1::PersistentVolumeClaim& claim);
// True when an earlier pod of the same name owns the claim, which is about to be deleted.
bool IsStale(const corev1::PersistentVolumeClaim& claim, const corev1::Pod& pod);

}  // namespace keelson::controllers
