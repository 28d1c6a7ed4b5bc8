#include "ctl/why/job/job_view.h"

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::ctl {

namespace {

template <typename T>
void KeepOwn(const std::string& uid, std::vector<T>& objects) {
  std::erase_if(objects, [&](const T& object) {
    const metav1::OwnerReference* owner = api::ControllerOf(object.metadata());
    return !owner || owner->uid() != uid;
  });
  std::stable_sort(objects.begin(), objects.end(), [](const T& a, const T& b) {
    return a.metadata().creation_timestamp().seconds() < b.metadata().creation_timestamp().seconds();
  });
}

}  // namespace

Result<JobView> ReadJob(const client::RestClient& api, const std::string& ns, const std::string& name,
                        WallTime now) {
  JobView view;
  view.now = now;
  KEELSON_ASSIGN_OR_RETURN(view.job, api.Get<batchv1::Job>(ns, name));
  KEELSON_ASSIGN_OR_RETURN(view.pods, api.List<corev1::Pod>(ns));
  KeepOwn(view.job.metadata().uid(), view.pods);
  KEELSON_ASSIGN_OR_RETURN(view.events, ReadEventsOf(api, ns, view.job.metadata().uid()));
  return view;
}

Result<CronJobView> ReadCronJob(const client::RestClient& api, const std::string& ns, const std::string& name,
                                WallTime now) {
  CronJobView view;
  view.now = now;
  KEELSON_ASSIGN_OR_RETURN(view.cron, api.Get<batchv1::CronJob>(ns, name));
  KEELSON_ASSIGN_OR_RETURN(view.jobs, api.List<batchv1::Job>(ns));
  KeepOwn(view.cron.metadata().uid(), view.jobs);
  KEELSON_ASSIGN_OR_RETURN(view.events, ReadEventsOf(api, ns, view.cron.metadata().uid()));
  return view;
}

}  // namespace keelson::ctl
