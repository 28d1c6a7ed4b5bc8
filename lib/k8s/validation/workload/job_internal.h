// Internal to lib/k8s/validation/workload: rules of Jobs that CronJobs share.
#pragma once

#include "lib/api/proto/batch_v1.pb.h"
#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

namespace batchv1 = api::batch::v1;

// Checks everything but the selector, which Job templates do not have.
void CheckJobSpec(const batchv1::JobSpec& spec, const Path& path, FieldErrors& errors);
void CheckJobStatus(const batchv1::Job& object, const batchv1::Job& old, FieldErrors& errors);
void CheckCronJob(const batchv1::CronJob& object, FieldErrors& errors);
void CheckCronJobUpdate(const batchv1::CronJob& object, const batchv1::CronJob& old, FieldErrors& errors);

}  // namespace keelson::k8s
