// Runs the probes of running containers and keeps what they found.
//
// A probe waits initialDelaySeconds after its container's start, then is made every periodSeconds.
// failureThreshold failures (successThreshold successes) in a row change the result. Until the startup probe
// has succeeded, liveness and readiness wait; after that it rests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/container/runtime_status.h"
#include "kubelet/pod/executor.h"
#include "kubelet/probe/handler.h"
#include "kubelet/probe/probe_metrics.h"
#include "kubelet/probe/results.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class ProbeManager : public ProbeResults {  // thread safe
 public:
  // on_change: the pod's uid, after a result has changed. event: of a failed probe, for its container.
  using ChangeFunction = std::function<void(const std::string& uid)>;
  using EventFunction = std::function<void(const corev1::Pod& pod, const std::string& container,
                                           const std::string& reason, const std::string& message)>;
  ProbeManager(HandlerRunner& runner, Executor& executor, ChangeFunction on_change, EventFunction event,
               Clock& clock = Clock::Real());

  // Makes the probes of exactly the pod's running containers run. A container that ran before this process
  // did keeps the readiness that the API knows until its probe has spoken.
  void Update(std::shared_ptr<const corev1::Pod> pod, const PodRuntimeStatus& runtime);
  void Remove(const corev1::Pod& pod);
  // Liveness and startup probes of a pod that terminates rest.
  void StopLiveness(const std::string& uid);
  std::optional<bool> Get(ProbeKind kind, const std::string& container_id) const override;
  std::string Metrics() const { return metrics_.Print(); }  // in Prometheus text
  // Returns when the probes under way have ended; what they find after the stop is dropped.
  void Run(std::stop_token stop);

 private:
  struct Key {
    std::string container_id;
    ProbeKind kind;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::shared_ptr<const corev1::Pod> pod;
    std::shared_ptr<const corev1::Probe> probe;
    std::string container, pod_ip;
    std::optional<bool> result;
    bool last = false;
    int in_row = 0;
    bool running = false;
    SteadyTime next;
    std::optional<SteadyTime> planned;  // in plan_
    uint64_t generation = 0;
  };
  using Entries = std::map<Key, Entry>;
  void Ensure(const Key& key, const corev1::Probe& probe, const std::shared_ptr<const corev1::Pod>& pod,
              const ContainerRecord& record, const std::string& pod_ip) REQUIRES(mutex_);
  // What one run of a probe needs to know: entries may go while it is under way.
  struct Due {
    Key key;
    uint64_t generation;
    std::shared_ptr<const corev1::Pod> pod;
    std::shared_ptr<const corev1::Probe> probe;
    std::string container, pod_ip;
  };
  void Plan(Entries::iterator entry) REQUIRES(mutex_);
  void Unplan(Entries::iterator entry) REQUIRES(mutex_);
  void Erase(const std::function<bool(const Key& key, const Entry& entry)>& goes) REQUIRES(mutex_);
  // Those whose time has come; `next` is when to look again.
  std::vector<Due> Collect(SteadyTime now, SteadyTime& next) REQUIRES(mutex_);
  void Launch(std::shared_ptr<const Due> due, std::stop_token stop);
  void Done(const Due& due, const ProbeOutcome& outcome, double took, const std::stop_token& stop);
  void Tell(const Due& due, const ProbeOutcome& outcome, bool changed);
  static bool Judge(Entry& entry, const ProbeOutcome& outcome);  // whether the result has changed
  bool Waiting(const Key& key) const REQUIRES(mutex_);           // for the startup probe, or for ever
  void StartupSucceeded(const std::string& container_id) REQUIRES(mutex_);

  HandlerRunner& runner_;
  Executor& executor_;
  const ChangeFunction on_change_;
  const EventFunction event_;
  Clock& clock_;
  const WallTime started_;
  ProbeMetrics metrics_;
  mutable Mutex mutex_;
  CondVar changed_;
  Entries entries_ GUARDED_BY(mutex_);
  // When to look at which entry: a look costs what is due, not what there is. An entry whose time came while
  // it was running, or waits for something else, is not in it until that has happened.
  std::set<std::pair<SteadyTime, const Key*>> plan_ GUARDED_BY(mutex_);
  std::set<std::string> dying_ GUARDED_BY(mutex_);  // pods whose liveness does not matter any more
  uint64_t next_generation_ GUARDED_BY(mutex_) = 1;
  int running_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet
