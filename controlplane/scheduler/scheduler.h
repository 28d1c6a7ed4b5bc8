// kube-scheduler: assigns pods that have no node to nodes.
//
//   informers -> EventHandlers -> Cache (nodes, and the pods on them, also assumed ones)
//                            \-> SchedulingQueue (activeQ, backoffQ, unschedulablePods)
//   scheduling thread:  Pop -> update the snapshot -> filter and score (Algorithm) -> assume, reserve, permit
//   ApiDispatcher:      binding cycles (PreBind, Bind), preemption, events, PodScheduled conditions
//   waiting thread:     pods whose Permit plugins or volumes take long (WaitingPods)
//
// One thread runs all scheduling cycles, so decisions never race. Calls to the API server run beside it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/scheduler/config/config.h"
#include "controlplane/scheduler/types/pod_resources.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::scheduler {

struct Options {
  Config config;
  int dispatcher_threads = 16;
  // Out-of-tree plugins: each at all extension points that it implements, after those of every profile.
  std::vector<std::shared_ptr<Plugin>> plugins;
  // How long a pod stays in unschedulablePods without an event that may help it.
  std::chrono::milliseconds pod_max_in_unschedulable_pods_duration{std::chrono::minutes(5)};
  uint64_t seed = 0;  // of tie-breaks; 0: random
  // Where the debug endpoint (debug_endpoint.h) listens, in plain HTTP; an empty host: nowhere.
  std::string debug_host;
  uint16_t debug_port = 0;
  // Shows the scheduler's pods while it runs; may be null.
  std::shared_ptr<PodResourcesPage> pod_resources;
  Clock* clock = &Clock::Real();
};

// Runs the scheduler; blocks until `stop`. Calls ready() once nodes and pods are known. kInvalid: the
// configuration.
Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready);

}  // namespace keelson::scheduler
