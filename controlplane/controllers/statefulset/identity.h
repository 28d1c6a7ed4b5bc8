// Who a StatefulSet's pods are: names, labels, hostnames and claims that follow from an ordinal. Pure
// functions.
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
// Whether the set wants a pod with this ordinal.
bool InRange(const appsv1::StatefulSet& set, int32_t ordinal);
// Of a pod named like one of the set's: "web-3"; nullopt for other names, also "web-03".
std::optional<int32_t> OrdinalOf(const appsv1::StatefulSet& set, const corev1::Pod& pod);
std::string PodNameAt(const appsv1::StatefulSet& set, int32_t ordinal);
std::string ClaimNameAt(const appsv1::StatefulSet& set, const corev1::PersistentVolumeClaim& source,
                        int32_t ordinal);

// `set` with the template of the revision that the pod is to have.
corev1::Pod NewPodAt(const appsv1::StatefulSet& set, int32_t ordinal, const std::string& revision);
// The claims of one pod, in the templates' order; without owners.
std::vector<corev1::PersistentVolumeClaim> ClaimsAt(const appsv1::StatefulSet& set, int32_t ordinal);

bool HasIdentity(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal);
bool HasStorage(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal);
// Labels and volumes as they should be.
void Mend(const appsv1::StatefulSet& set, int32_t ordinal, corev1::Pod& pod);

// Brings a claim's owners in line with persistentVolumeClaimRetentionPolicy: the set owns it if it goes with
// the set, the pod if it goes with a pod that is too many. Returns whether anything changed; a claim that
// another controller owns is left as it is.
bool UpdateOwners(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal,
                  corev1::PersistentVolumeClaim& claim);
// An earlier pod of the same name owns the claim: it is about to be removed.
bool IsStale(const corev1::PersistentVolumeClaim& claim, const corev1::Pod& pod);

}  // namespace keelson::controllers
