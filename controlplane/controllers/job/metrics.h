// What is told of Jobs on /metrics, by upstream's names.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "controlplane/controllers/job/failures.h"

namespace keelson::controllers {

enum class SyncAction { kReconciling, kTracking, kPodsCreated, kPodsDeleted };

void CountSync(const batchv1::Job& job, SyncAction action, bool success, std::chrono::nanoseconds took);
// `terminating`: a pod that has not gone yet was replaced.
void CountPodCreation(const batchv1::Job& job, bool terminating, bool success);
// By what the status has counted more than before; of an indexed Job its indexes too.
void CountEndedPods(const batchv1::Job& before, const batchv1::Job& after);
// What the pod failure policy has done to how many pods.
void CountPolicyActions(const std::map<std::string, int>& actions);
// Pods that have ended and are not counted yet: one more, one fewer, or no news. Null: not there.
void CountTrackedEnd(const corev1::Pod* before, const corev1::Pod* after);
void CountManagedElsewhere(const batchv1::Job& job);
void CountFinished(const batchv1::Job& job, const batchv1::JobCondition& end);

}  // namespace keelson::controllers
