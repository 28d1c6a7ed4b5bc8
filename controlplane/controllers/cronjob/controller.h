// Makes Jobs on the schedules of CronJobs.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/latest_writes.h"
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
    batchv1::CronJob cron;  // its status becomes what is written
    bool changed = false;   // the status
  };

  void OnCron(const client::Change<batchv1::CronJob>& change);
  void OnJob(const client::Change<batchv1::Job>& change);
  void EnqueueOwner(const batchv1::Job& job);

  // Brings the status up to date with what Jobs there are, also those that a controller made just before it
  // was killed.
  Result<> FollowJobs(Sync& sync, const JobPointers& jobs);
  void FollowJob(Sync& sync, const batchv1::Job& job);
  Result<> WriteStatus(Sync& sync, const std::string& key);
  void RemoveOld(Sync& sync, const JobPointers& jobs);
  Result<Requeue> Schedule(Sync& sync);
  Result<Requeue> Start(Sync& sync, const Timetable& table, WallTime time);
  Result<> ReplaceActive(Sync& sync);
  // Also from status.active, and with an event; a Job that is gone already is no error.
  Result<> RemoveJob(Sync& sync, const batchv1::Job& job);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<batchv1::CronJob>& crons_;
  client::Informer<batchv1::Job>& jobs_;
  LatestWrites written_;
};

}  // namespace keelson::controllers
