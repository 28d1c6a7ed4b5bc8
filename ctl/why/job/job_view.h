// What the API server has about a Job, or a CronJob and its Jobs.
#pragma once

#include <string>
#include <vector>

#include "ctl/why/events.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

namespace batchv1 = api::batch::v1;

struct JobView {
  batchv1::Job job;
  std::vector<corev1::Pod> pods;  // of the Job, the oldest first
  Events events;                  // of the Job, the oldest first
  WallTime now;
};
Result<JobView> ReadJob(const client::RestClient& api, const std::string& ns, const std::string& name,
                        WallTime now);

struct CronJobView {
  batchv1::CronJob cron;
  std::vector<batchv1::Job> jobs;  // of the CronJob, the oldest first
  Events events;                   // of the CronJob, the oldest first
  WallTime now;
};
Result<CronJobView> ReadCronJob(const client::RestClient& api, const std::string& ns, const std::string& name,
                                WallTime now);

}  // namespace keelson::ctl
