// For tests: controllers on an API with random faults (refusals, conflicts, lost requests, lost answers, lost
// watches), killed at random writes, next to a kubelet that acts at random. A seed selects the sequence;
// thread scheduling may vary it slightly.
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
  // Creates the controllers; called again after each kill.
  using Make = std::function<std::vector<Controller*>(TestCluster&)>;
  FaultWorld(uint32_t seed, Make make);

  // Runs `act` with faults off: requests of the test itself never fail.
  void Own(const std::function<void()>& act);
  void Start() { Restart(); }
  // Lets the controllers run for a while with faults, then lets the kubelet act on the pods.
  void Round();
  // Repeats rounds without faults until the controllers have nothing left to do.
  void Calm();
  // A random number in [0, sides).
  int Roll(int sides);
  void Note(const std::string& problem);
  std::string Problems();

  // Called after each pod that a controller creates; may be called concurrently.
  std::function<void()> on_pod;
  // Called after each pod that a controller deletes, with the pod as it was.
  std::function<void(const corev1::Pod&)> on_deleted;
  // What the kubelet does next with a running pod.
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
  std::mt19937 dice_ KEELSON_GUARDED_BY(mutex_);
  bool faults_ KEELSON_GUARDED_BY(mutex_) = true, dead_ KEELSON_GUARDED_BY(mutex_) = false;
  std::string problems_ KEELSON_GUARDED_BY(mutex_);
};

// Notes a problem for each pod that has more than one controller reference, or whose controller does not
// exist.
void CheckOwners(FaultWorld& world, const std::vector<corev1::Pod>& pods);

}  // namespace keelson::controllers
