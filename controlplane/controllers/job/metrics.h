// What is told of Jobs on /metrics, by upstream's names.
#pragma once

#include <chrono>

#include "controlplane/controllers/job/failures.h"

namespace keelson::controllers {

enum class SyncAction { kReconciling, kTracking, kPodsCreated, kPodsDeleted };

void CountSync(const batchv1::Job& job, SyncAction action, bool success, std::chrono::nanoseconds took);
// `terminating`: a pod that has not gone yet was replaced.
void CountPodCreation(const batchv1::Job& job, bool terminating, bool success);
// By what the status has counted more than before.
void CountEndedPods(const batchv1::Job& before, const batchv1::Job& after);
void CountFinished(const batchv1::Job& job, const batchv1::JobCondition& end);

}  // namespace keelson::controllers
