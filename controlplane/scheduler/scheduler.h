// kube-scheduler: assigns pods that have no node to nodes.
//
//   informers --> Cache (nodes, and pods on them, also those assumed to be)
//             \-> SchedulingQueue (active, backoff, unschedulable)
//   one thread:  pop -> snapshot -> filter and score (Algorithm) -> assume -> hand to a binder
//   binders:     PreBind, Bind (pods/binding), evictions, events, PodScheduled conditions
//   one thread:  looks after pods whose volumes or Permit plugins are long in coming (WaitingRoom)
//
// One thread decides, so decisions never race; what waits for the API server runs beside it.
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
  int binders = 16;
  // Of others: at all points that they implement, after those of each profile.
  std::vector<std::shared_ptr<Plugin>> plugins;
  // How long a pod stays unschedulable without an event that may help it.
  std::chrono::milliseconds max_unschedulable{std::chrono::minutes(5)};
  uint64_t seed = 0;  // of tie-breaks; 0: random
  // Where the debug endpoint (why.h) listens, in plain HTTP; an empty host: nowhere.
  std::string debug_host;
  uint16_t debug_port = 0;
  // Shows the scheduler's pods while it runs; may be null.
  std::shared_ptr<PodResourcesPage> pod_resources;
  Clock* clock = &Clock::Real();
};

// Blocks until `stop`; `ready` is called once nodes and pods are known. kInvalid: the configuration.
Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready);

}  // namespace keelson::scheduler
