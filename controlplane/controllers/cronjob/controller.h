// Creates Jobs on the schedules of CronJobs.
#pragma once

#include "controlplane/controllers/common/consistency_store.h"
#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/cronjob/plan.h"

namespace keelson::controllers {

class CronJobController : public Controller {
 public:
  CronJobController(client::RestClient api, client::InformerFactory& informers, client::EventRecorder& events,
                    Clock& clock);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  struct Sync {
    client::RestClient api;
    batchv1::CronJob cron;  // its status is updated in place, then written
    bool changed = false;   // the status differs from the stored one
  };

  void OnCron(const client::Change<batchv1::CronJob>& change);
  void OnJob(const client::Change<batchv1::Job>& change);
  void EnqueueOwner(const batchv1::Job& job);

  // Updates the status from the existing Jobs, including Jobs that a controller created just before it was
  // killed.
  Result<> FollowJobs(Sync& sync, const JobPointers& jobs);
  void FollowJob(Sync& sync, const batchv1::Job& job);
  Result<> WriteStatus(Sync& sync, const std::string& key);
  void RemoveOld(Sync& sync, const JobPointers& jobs);
  Result<Requeue> Schedule(Sync& sync);
  Result<Requeue> Start(Sync& sync, const Timetable& table, WallTime time);
  Result<> ReplaceActive(Sync& sync);
  // Deletes the Job, removes it from status.active and records an event. Succeeds when the Job is already
  // gone.
  Result<> RemoveJob(Sync& sync, const batchv1::Job& job);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<batchv1::CronJob>& crons_;
  client::Informer<batchv1::Job>& jobs_;
  ConsistencyStore written_;
};

}  // namespace keelson::controllers
