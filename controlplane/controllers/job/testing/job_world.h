// For tests: a Job, its controllers and a kubelet. Each written status is validated as the API server would;
// Restart() drops the controllers' in-memory state.
#pragma once

#include <map>
#include <memory>

#include "controlplane/controllers/job/controller.h"
#include "controlplane/controllers/job/orphans.h"
#include "controlplane/controllers/job/testing/jobs.h"

namespace keelson::controllers {

class JobWorld {
 public:
  JobWorld();
  void Start(const batchv1::Job& job);
  // Replaces the controllers by new ones without in-memory state.
  void Restart();

  batchv1::Job Job() { return cluster.Get<batchv1::Job>("default", "j"); }
  std::vector<corev1::Pod> Pods() { return cluster.List<corev1::Pod>("default"); }
  void Change(const std::function<void(batchv1::Job&)>& change);
  // Reconciles all keys that are due.
  void Drain();
  // Advances the clock by `time`, and reconciles keys as they become due.
  void Wait(std::chrono::seconds time);
  // One kubelet pass over all pods: starts pods without a node, removes terminating pods, and ends running
  // pods with exit_code(pod) (negative: keeps running). Then the controllers get ten seconds, enough to
  // replace pods that failed once.
  void Round(const std::function<int(const corev1::Pod&)>& exit_code);
  // Writes that were invalid, and requests that failed unexpectedly.
  std::string Problems();

  // Called before each controller request; the request fails when it returns false.
  std::function<bool(const client::ApiRequest&)> gate;
  TestCluster cluster;

 private:
  std::optional<Result<client::ApiResponse>> Intercept(const client::ApiRequest& request);
  std::vector<Controller*> Controllers() { return {jobs_, orphans_}; }

  JobController* jobs_ = nullptr;
  JobOrphanController* orphans_ = nullptr;
  bool of_test_ = false;  // requests are the test's own
  Mutex mutex_;
  std::string problems_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
