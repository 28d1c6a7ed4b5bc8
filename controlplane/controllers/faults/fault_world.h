// For tests: controllers on an API that fails as the dice fall (refusals, conflicts, requests that are never
// answered, answers and watches that are lost), that are killed at any write, beside a kubelet of moods. A
// seed names a story; threads may tell it a little differently each time.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class FaultWorld {
 public:
  // `make` makes the controllers, again after each kill.
  using Make = std::function<std::vector<Controller*>(TestCluster&)>;
  FaultWorld(uint32_t seed, Make make);

  // What the test itself asks of the API: it never fails.
  void Own(const std::function<void()>& act);
  void Start() { Restart(); }
  // Time for the controllers, with faults; then the kubelet looks at the pods.
  void Round();
  // The same without faults, as often as it takes to end whatever was begun.
  void Calm();
  // 0 ... sides - 1
  int Roll(int sides);
  void Note(const std::string& problem);
  std::string Problems();

  // Called after each pod that a controller has made, side by side.
  std::function<void()> on_pod;
  // Called after each pod that a controller has deleted, with the pod as it was.
  std::function<void(const corev1::Pod&)> on_deleted;
  // What a pod that runs does next.
  enum class Fate { kRuns, kSucceeds, kFails, kIsDeleted };
  std::function<Fate(const corev1::Pod&)> fate;

  TestCluster cluster;

 private:
  enum class Fault { kNone, kRefused, kConflict, kUnanswered, kAnswerLost };
  std::optional<Result<client::ApiResponse>> Intercept(const client::ApiRequest& request);
  bool Faulty();
  Fault FaultFor(const client::ApiRequest& request);
  Result<client::ApiResponse> Pass(const client::ApiRequest& request);
  std::optional<corev1::Pod> PodOf(const client::ApiRequest& deletion);
  void Restart();
  void LoseWatches();
  void Work();
  void Kubelet();

  const Make make_;
  std::vector<Controller*> controllers_;
  Mutex mutex_;
  std::mt19937 dice_ GUARDED_BY(mutex_);
  bool faults_ GUARDED_BY(mutex_) = true, dead_ GUARDED_BY(mutex_) = false;
  std::string problems_ GUARDED_BY(mutex_);
};

// Every pod has at most one controller, and that one exists. Problems otherwise.
void CheckOwners(FaultWorld& world, const std::vector<corev1::Pod>& pods);

}  // namespace keelson::controllers
