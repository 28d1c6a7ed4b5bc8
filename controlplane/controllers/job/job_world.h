// A Job, its controllers and a kubelet, for tests. Every status that is written is held to the API server's
// rules, and what controllers remember can be lost.
#pragma once

#include <map>
#include <memory>

#include "controlplane/controllers/job/controller.h"
#include "controlplane/controllers/job/orphans.h"
#include "controlplane/controllers/job/testing.h"

namespace keelson::controllers {

class JobWorld {
 public:
  JobWorld();
  void Start(const batchv1::Job& job);
  // New controllers that know nothing but what the API has.
  void Restart();

  batchv1::Job Job() { return cluster.Get<batchv1::Job>("default", "j"); }
  std::vector<corev1::Pod> Pods() { return cluster.List<corev1::Pod>("default"); }
  void Change(const std::function<void(batchv1::Job&)>& change);
  // Reconciles what is due.
  void Drain();
  // Some time passes, and whatever is due meanwhile is done.
  void Wait(std::chrono::seconds time);
  // A kubelet's look at all pods: those without a node start, those that terminate end and go, and those that
  // run end with exit_code(pod); negative: they run on. Then controllers get ten seconds, in which pods that
  // failed once are made again.
  void Round(const std::function<int(const corev1::Pod&)>& exit_code);
  // Writes that broke a rule, or that failed and should not have.
  std::string Problems();

  // Asked before every request of controllers; false: it fails.
  std::function<bool(const client::ApiRequest&)> gate;
  TestCluster cluster;

 private:
  std::optional<Result<client::ApiResponse>> Intercept(const client::ApiRequest& request);
  std::vector<Controller*> Controllers() { return {jobs_, orphans_}; }

  JobController* jobs_ = nullptr;
  JobOrphanController* orphans_ = nullptr;
  bool of_test_ = false;  // requests are the test's own
  Mutex mutex_;
  std::string problems_ GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
