// What faulty extensions of the API do to others: how long a ConfigMap takes to read while they go on.
#pragma once

#include "lib/base/error.h"
#include "lib/client/transport.h"
#include "tests/bench/load.h"

namespace keelson::bench {

struct FaultOptions {
  int gets = 4000, workers = 4;       // of each measurement
  int watchers = 2000, objects = 50;  // of the definition that is deleted
};

// Prints the times of reads, with each fault and without it in turns, and how they compare. Makes its own objects and
// removes them.
Result<> RunFaults(const LoadClient& client, client::Transport& transport, const FaultOptions& options);

}  // namespace keelson::bench
