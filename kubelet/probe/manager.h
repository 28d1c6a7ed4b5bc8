// The probe manager: runs the probes of running containers and keeps their results.
//
// A probe starts initialDelaySeconds after its container, and runs every periodSeconds. failureThreshold failures
// (successThreshold successes) in a row change the result. A probe that cannot be run is retried three times at
// once, then ignored. Liveness and readiness wait until the startup probe has succeeded; then it stops. A liveness or
// startup probe that has failed stops too: its container is about to be killed, after its preStop hook.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/container/runtime_status.h"
#include "kubelet/metrics/stopwatch.h"
#include "kubelet/probe/handler.h"
#include "kubelet/probe/probe_metrics.h"
#include "kubelet/probe/results.h"
#include "kubelet/workers/executor.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class ProbeManager : public ProbeResults {  // thread safe
 public:
  // `on_change`: called with the pod's UID after a result has changed. `event`: of a failed probe.
  using ChangeFunction = std::function<void(const std::string& uid)>;
  using EventFunction = std::function<void(const corev1::Pod& pod, const std::string& container,
                                           const std::string& reason, const std::string& message)>;
  ProbeManager(HandlerRunner& runner, Executor& executor, ChangeFunction on_change, EventFunction event,
               Clock& clock = Clock::Real());

  // Starts probes of the pod's running containers, and stops those of others. A container that ran before this
  // kubelet started keeps its readiness from the API server until its first result.
  // `node_ips`: targets for pods on the host network, the primary one first.
  void Update(std::shared_ptr<const corev1::Pod> pod, const PodRuntimeStatus& runtime,
              const std::vector<std::string>& node_ips);
  void Remove(const corev1::Pod& pod);  // stops all probes of the pod
  // Stops liveness and startup probes of a terminating pod.
  void StopLiveness(const std::string& uid);
  std::optional<bool> Get(ProbeKind kind, const std::string& container_id) const override;
  std::string Metrics() const { return metrics_.Print(); }  // in Prometheus text
  // Runs until `stop`, and returns when running probes have ended. Their results after `stop` are dropped.
  void Run(std::stop_token stop);

 private:
  struct Key {
    std::string container_id;
    ProbeKind kind;
    auto operator<=>(const Key&) const = default;
  };
  // A probe of a container. What is const may be read without the lock, by the run that is under way.
  struct Entry {
    const Key key;
    const std::shared_ptr<const corev1::Probe> probe;
    const std::string container;
    const std::shared_ptr<Entry> startup;  // the container's startup probe; null: none, or this is it
    ProbeMetrics::Labels labels;
    std::shared_ptr<const corev1::Pod> pod = nullptr;
    std::string pod_ip;
    std::shared_ptr<const PreparedProbe> prepared = nullptr;  // null: it takes a thread
    std::optional<bool> result = std::nullopt;
    bool last = false;
    int in_row = 0;
    bool running = false, gone = false;
    SteadyTime next = {};
    std::optional<SteadyTime> planned = std::nullopt;  // in plan_
  };
  using Entries = std::map<Key, std::shared_ptr<Entry>>;
  void Ensure(const Key& key, const corev1::Probe& probe, const std::shared_ptr<const corev1::Pod>& pod,
              const ContainerRecord& record, const std::string& pod_ip) KEELSON_REQUIRES(mutex_);
  std::shared_ptr<Entry> Find(const std::string& container_id, ProbeKind kind) const KEELSON_REQUIRES(mutex_);
  // One run of a probe. The entry may go while it is under way.
  struct Due {
    std::shared_ptr<Entry> entry;
    std::shared_ptr<const corev1::Pod> pod;
    std::string pod_ip;
    std::shared_ptr<const PreparedProbe> prepared;
    std::stop_token stop;
    int tries = 1;
    Stopwatch watch = {};
  };
  void Plan(const std::shared_ptr<Entry>& entry) KEELSON_REQUIRES(mutex_);
  void Unplan(const std::shared_ptr<Entry>& entry) KEELSON_REQUIRES(mutex_);
  void Erase(const std::function<bool(const Entry& entry)>& goes) KEELSON_REQUIRES(mutex_);
  // Those whose time has come; `next` is when to look again.
  std::vector<Due> Collect(SteadyTime now, SteadyTime& next, const std::stop_token& stop)
      KEELSON_REQUIRES(mutex_);
  void Launch(std::shared_ptr<const Due> due);
  void Made(const std::shared_ptr<const Due>& due, const ProbeOutcome& outcome);
  void Done(const Due& due, const ProbeOutcome& outcome);
  void Tell(const Due& due, const ProbeOutcome& outcome, bool changed);
  static bool Judge(Entry& entry, const ProbeOutcome& outcome);  // whether the result has changed
  static bool Waiting(const Entry& entry);                       // for the startup probe, or without end
  void StartupSucceeded(const std::string& container_id) KEELSON_REQUIRES(mutex_);

  HandlerRunner& runner_;
  Executor& executor_;
  const ChangeFunction on_change_;
  const EventFunction event_;
  Clock& clock_;
  const WallTime started_;
  ProbeMetrics metrics_;
  mutable Mutex mutex_;
  CondVar changed_;
  Entries entries_ KEELSON_GUARDED_BY(mutex_);
  // When to look at which entry: a look costs what is due, not what there is. An entry whose time came while
  // it was running, or waits for something else, is not in it until that has happened.
  std::set<std::pair<SteadyTime, std::shared_ptr<Entry>>> plan_ KEELSON_GUARDED_BY(mutex_);
  std::set<std::string> dying_ KEELSON_GUARDED_BY(mutex_);  // pods whose liveness does not matter any more
  unsigned made_ KEELSON_GUARDED_BY(mutex_) = 0;            // entries, ever
  int running_ KEELSON_GUARDED_BY(mutex_) = 0;
  bool stopping_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet
