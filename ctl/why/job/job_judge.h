// Finds what keeps a Job from completing, or a CronJob from starting Jobs. Pure.
#pragma once

#include "ctl/why/job/job_view.h"
#include "ctl/why/why_report.h"

namespace keelson::ctl {

WhyReport JudgeJob(const JobView& view);
WhyReport JudgeCronJob(const CronJobView& view);

}  // namespace keelson::ctl
