// kube-scheduler: assigns pods that have no node to nodes.
//
//   informers --> Cache (nodes, and pods on them, also those assumed to be)
//             \-> SchedulingQueue (active, backoff, unschedulable)
//   one thread:  pop -> snapshot -> filter and score (Algorithm) -> assume -> hand to a binder
//   binders:     PreBind, Bind (pods/binding), events, PodScheduled conditions
//
// One thread decides, so decisions never race; what waits for the API server runs beside it.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::scheduler {

struct Options {
  // Pods with this spec.schedulerName are ours; also the source of our events.
  std::string scheduler_name = "default-scheduler";
  int binders = 16;
  // Share of the nodes to find feasible before scoring; 0: less the larger the cluster.
  int percentage_of_nodes_to_score = 0;
  std::chrono::milliseconds initial_backoff{std::chrono::seconds(1)};
  std::chrono::milliseconds max_backoff{std::chrono::seconds(10)};
  // How long a pod stays unschedulable without an event that may help it.
  std::chrono::milliseconds max_unschedulable{std::chrono::minutes(5)};
  uint64_t seed = 0;  // of tie-breaks; 0: random
  Clock* clock = &Clock::Real();
};

// Blocks until `stop`; `ready` is called once nodes and pods are known.
Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready);

}  // namespace keelson::scheduler
