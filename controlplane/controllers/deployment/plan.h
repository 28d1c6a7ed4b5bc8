// The arithmetic of deployments: how many pods each ReplicaSet should have, and what the deployment's status
// says. Pure functions without I/O.
//
// `sets` are a deployment's ReplicaSets; the new one is that whose template is the deployment's.
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
// Of a rolling update; zero for Recreate. Percentages are of spec.replicas, surge rounded up, unavailable
// down; both zero would stand still, so then one pod may be unavailable.
Limits LimitsOf(const appsv1::Deployment& deployment);

// ---- ReplicaSets ----

bool SameTemplate(const corev1::PodTemplateSpec& a,
                  const corev1::PodTemplateSpec& b);  // but for the hash label
// Ten or so letters and digits for the label and the name of a new ReplicaSet.
std::string TemplateHash(const corev1::PodTemplateSpec& pod_template, int32_t collisions);
// The oldest with the deployment's template, or null.
SetPointer FindNewSet(const appsv1::Deployment& deployment, const SetPointers& sets);
SetPointers Without(const SetPointers& sets, const SetPointer& one);
SetPointers WithReplicas(const SetPointers& sets);   // spec.replicas > 0
int64_t RevisionOf(const metav1::ObjectMeta& meta);  // 0 when there is none
int64_t MaxRevision(const SetPointers& sets);
int32_t SumSpec(const SetPointers& sets);
int32_t SumStatus(const SetPointers& sets);
int32_t SumAvailable(const SetPointers& sets);

// Copies the deployment's annotations that a set is to have, and moves its revision (keeping the history).
// Returns whether anything changed. `exists`: the set is stored already, and its replica annotations stay.
bool AnnotateSet(const appsv1::Deployment& deployment, int64_t revision, bool exists,
                 appsv1::ReplicaSet& set);
// desired-replicas and max-replicas: what later tells a scaling from a rollout.
bool AnnotateReplicas(const appsv1::Deployment& deployment, appsv1::ReplicaSet& set);
// Which revision the deployment is asked to go back to, 0 for the one before; nullopt when it is not asked.
std::optional<int64_t> RollbackRevision(const appsv1::Deployment& deployment);
// The highest revision but one; 0 when there is none.
int64_t LastRevision(const SetPointers& sets);
// Gives the deployment the set's template, and the annotations that it had with it.
void RestoreFrom(const appsv1::ReplicaSet& set, appsv1::Deployment& deployment);
// spec.replicas was changed since the sets were last scaled.
bool IsScaling(const appsv1::Deployment& deployment, const SetPointers& sets);

// ---- sizes ----

using Sizes = std::map<std::string, int32_t>;  // spec.replicas by name of the set; only those that change

// A rolling update's next step: the new set up, else old sets down; empty: nothing to do now.
Sizes PlanRollingUpdate(const appsv1::Deployment& deployment, const SetPointer& new_set,
                        const SetPointers& sets);
// What the new set may grow to from `size`.
int32_t NewSetSize(const appsv1::Deployment& deployment, const SetPointers& old_sets, int32_t size);
// spec.replicas changed, perhaps in mid-rollout: all sets grow or shrink in proportion. Empty: nothing to do,
// or nothing until pods have gone that are to go.
Sizes PlanScale(const appsv1::Deployment& deployment, const SetPointer& new_set, const SetPointers& old_sets);
// Old sets beyond spec.revisionHistoryLimit, the oldest revisions first.
SetPointers SetsToCleanUp(const appsv1::Deployment& deployment, const SetPointers& old_sets);

// ---- status ----

bool HasProgressDeadline(const appsv1::Deployment& deployment);
bool IsComplete(const appsv1::Deployment& deployment, const appsv1::DeploymentStatus& status);
const appsv1::DeploymentCondition* FindCondition(const appsv1::DeploymentStatus& status,
                                                 std::string_view type);
appsv1::DeploymentCondition MakeCondition(std::string_view type, std::string_view status,
                                          std::string_view reason, std::string message, WallTime now);
// Same status and reason: nothing changes, not even times. Same status: lastTransitionTime stays.
void SetCondition(appsv1::DeploymentStatus& status, appsv1::DeploymentCondition condition);
void RemoveCondition(appsv1::DeploymentStatus& status, std::string_view type);

// Counts and the Available condition.
appsv1::DeploymentStatus CountStatus(const appsv1::Deployment& deployment, const SetPointer& new_set,
                                     const SetPointers& sets, WallTime now);
// CountStatus, and the Progressing and ReplicaFailure conditions of a rollout.
appsv1::DeploymentStatus RolloutStatus(const appsv1::Deployment& deployment, const SetPointer& new_set,
                                       const SetPointers& sets, WallTime now);
// When a rollout that does not move must be looked at again; nullopt: not.
std::optional<std::chrono::nanoseconds> StuckCheckAfter(const appsv1::Deployment& deployment,
                                                        const appsv1::DeploymentStatus& status, WallTime now);

}  // namespace keelson::controllers
