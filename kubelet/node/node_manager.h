// Registers the node, keeps its status up to date and renews its Lease.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "kubelet/node/node_events.h"
#include "kubelet/node/node_status.h"
#include "kubelet/node/startup_times.h"
#include "lib/base/mutex.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

class NodeManager {
 public:
  using FactsFunction = std::function<NodeFacts(std::stop_token stop)>;
  using EventFunction = std::function<void(const NodeEvent& event)>;  // may be empty
  NodeManager(client::RestClient api, NodeOptions options, FactsFunction facts, Clock& clock = Clock::Real(),
              EventFunction event = {});

  // Registers the node, then updates its status until `stop`. Calls `ready` after the first update.
  Result<> RunStatus(std::stop_token stop, const std::function<void()>& ready);
  // Renews the Lease until `stop`.
  Result<> RunLease(std::stop_token stop);
  // Updates the status now instead of at the next period. Any thread.
  void UpdateNow();
  const Machine& machine() const { return machine_; }

 private:
  Result<> Register(std::stop_token stop);
  NodeFacts Observe(std::stop_token stop);
  Result<> UpdateStatus(std::stop_token stop);
  // Sends events about what has changed.
  void Tell(const corev1::Node& node, const corev1::NodeStatus& now);
  // Waits until the node is ready. False: not within the limit.
  bool AwaitReadiness(std::chrono::milliseconds limit, std::stop_token stop);
  // Waits for `limit`, or UpdateNow().
  void AwaitRound(std::chrono::milliseconds limit, std::stop_token stop);
  Result<> RenewLease(std::stop_token stop);

  client::RestClient api_;
  const NodeOptions options_;
  const FactsFunction facts_;
  const EventFunction event_;
  Clock& clock_;
  const Machine machine_;
  StartupTimes startup_;  // this and the next three are of the status thread
  std::optional<SteadyTime> reported_;
  std::optional<bool> unschedulable_;
  std::optional<std::string> address_problem_;
  std::optional<coordinationv1::Lease> lease_;  // of the lease thread
  Mutex mutex_;
  CondVar wake_;
  bool asked_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet
