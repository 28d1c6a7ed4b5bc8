// Metrics of the Job controller, with upstream's names.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "controlplane/controllers/job/failures.h"

namespace keelson::controllers {

enum class SyncAction { kReconciling, kTracking, kPodsCreated, kPodsDeleted };

void CountSync(const batchv1::Job& job, SyncAction action, bool success, std::chrono::nanoseconds took);
// `terminating`: the pod replaces one that is still terminating.
void CountPodCreation(const batchv1::Job& job, bool terminating, bool success);
// Counts the pods, and for an indexed Job the indexes, that `after` counts beyond `before`.
void CountEndedPods(const batchv1::Job& before, const batchv1::Job& after);
// Pods by action of the pod failure policy.
void CountPolicyActions(const std::map<std::string, int>& actions);
// Maintains the number of ended pods that still have the tracking finalizer. Null: the pod does not exist.
void CountTrackedEnd(const corev1::Pod* before, const corev1::Pod* after);
void CountManagedElsewhere(const batchv1::Job& job);
void CountFinished(const batchv1::Job& job, const batchv1::JobCondition& end);

}  // namespace keelson::controllers
