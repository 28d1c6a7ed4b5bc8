// The size of each ReplicaSet of a Deployment, and the Deployment's status. Pure functions.
//
// `sets` are all ReplicaSets of the Deployment. The new ReplicaSet is the one with the Deployment's template;
// the others are old.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::controllers {

using SetPointer = std::shared_ptr<const appsv1::ReplicaSet>;
using SetPointers = std::vector<SetPointer>;

inline constexpr char kRevision[] = "deployment.kubernetes.io/revision";
inline constexpr char kRevisionHistory[] = "deployment.kubernetes.io/revision-history";
inline constexpr char kDesiredReplicas[] = "deployment.kubernetes.io/desired-replicas";
inline constexpr char kMaxReplicas[] = "deployment.kubernetes.io/max-replicas";
inline constexpr char kRollbackTo[] = "deprecated.deployment.rollback.to";
inline constexpr char kPodTemplateHash[] = "pod-template-hash";

// ---- limits ----

struct Limits {
  int32_t surge = 0, unavailable = 0;
};
// maxSurge and maxUnavailable of a rolling update, percentages of spec.replicas with surge rounded up and
// unavailable down. Both are zero for Recreate. When both would be zero, unavailable is 1, so that the
// rollout can proceed.
Limits LimitsOf(const appsv1::Deployment& deployment);

// ---- ReplicaSets ----

bool SameTemplate(const corev1::PodTemplateSpec& a,
                  const corev1::PodTemplateSpec& b);  // ignores the pod-template-hash label
// The pod-template-hash: about ten letters and digits, for the label and the name of a new ReplicaSet.
std::string TemplateHash(const corev1::PodTemplateSpec& pod_template, int32_t collisions);
// Returns the oldest ReplicaSet with the Deployment's template, or null.
SetPointer FindNewSet(const appsv1::Deployment& deployment, const SetPointers& sets);
SetPointers Without(const SetPointers& sets, const SetPointer& one);
SetPointers WithReplicas(const SetPointers& sets);   // spec.replicas > 0
int64_t RevisionOf(const metav1::ObjectMeta& meta);  // 0 when not set
int64_t MaxRevision(const SetPointers& sets);
int32_t SumSpec(const SetPointers& sets);
int32_t SumStatus(const SetPointers& sets);
int32_t SumAvailable(const SetPointers& sets);

// Copies the Deployment's annotations to a ReplicaSet, and sets its revision (keeping the revision history).
// Returns whether anything changed. `exists`: the ReplicaSet is stored already, so its desired-replicas and
// max-replicas stay.
bool AnnotateSet(const appsv1::Deployment& deployment, int64_t revision, bool exists,
                 appsv1::ReplicaSet& set);
// Sets desired-replicas and max-replicas, which IsScaling() compares. Returns whether anything changed.
bool AnnotateReplicas(const appsv1::Deployment& deployment, appsv1::ReplicaSet& set);
// The revision that kRollbackTo asks for, 0 for the previous one; nullopt without the annotation.
std::optional<int64_t> RollbackRevision(const appsv1::Deployment& deployment);
// The second highest revision; 0 when there is none.
int64_t LastRevision(const SetPointers& sets);
// Copies the ReplicaSet's template, and the annotations recorded with it, to the Deployment.
void RestoreFrom(const appsv1::ReplicaSet& set, appsv1::Deployment& deployment);
// True when spec.replicas has changed since the ReplicaSets were last scaled.
bool IsScaling(const appsv1::Deployment& deployment, const SetPointers& sets);

// ---- sizes ----

using Sizes = std::map<std::string, int32_t>;  // spec.replicas by name of the set; only those that change

// The next step of a rolling update: scale the new ReplicaSet up, or old ones down. Empty: nothing to do now.
Sizes PlanRollingUpdate(const appsv1::Deployment& deployment, const SetPointer& new_set,
                        const SetPointers& sets);
// The size that the new ReplicaSet may grow to from `size`.
int32_t NewSetSize(const appsv1::Deployment& deployment, const SetPointers& old_sets, int32_t size);
// Scales all ReplicaSets in proportion after a change of spec.replicas, also in mid-rollout. Empty: nothing
// to do, or nothing until surplus pods are gone.
Sizes PlanScale(const appsv1::Deployment& deployment, const SetPointer& new_set, const SetPointers& old_sets);
// The old ReplicaSets beyond spec.revisionHistoryLimit, lowest revision first.
SetPointers SetsToCleanUp(const appsv1::Deployment& deployment, const SetPointers& old_sets);

// ---- status ----

bool HasProgressDeadline(const appsv1::Deployment& deployment);
bool IsComplete(const appsv1::Deployment& deployment, const appsv1::DeploymentStatus& status);
const appsv1::DeploymentCondition* FindCondition(const appsv1::DeploymentStatus& status,
                                                 std::string_view type);
appsv1::DeploymentCondition MakeCondition(std::string_view type, std::string_view status,
                                          std::string_view reason, std::string message, WallTime now);
// Replaces the condition of the same type. Does nothing when status and reason are equal. Keeps
// lastTransitionTime when the status is equal.
void SetCondition(appsv1::DeploymentStatus& status, appsv1::DeploymentCondition condition);
void RemoveCondition(appsv1::DeploymentStatus& status, std::string_view type);

// The replica counts and the Available condition.
appsv1::DeploymentStatus CountStatus(const appsv1::Deployment& deployment, const SetPointer& new_set,
                                     const SetPointers& sets, WallTime now);
// CountStatus() plus the Progressing and ReplicaFailure conditions.
appsv1::DeploymentStatus RolloutStatus(const appsv1::Deployment& deployment, const SetPointer& new_set,
                                       const SetPointers& sets, WallTime now);
// Time until a stalled rollout exceeds progressDeadlineSeconds; nullopt: no check needed.
std::optional<std::chrono::nanoseconds> StuckCheckAfter(const appsv1::Deployment& deployment,
                                                        const appsv1::DeploymentStatus& status, WallTime now);

}  // namespace keelson::controllers
