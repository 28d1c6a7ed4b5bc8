// The cost of faulty extensions of the API to other clients: how long a ConfigMap takes to read beside them, and beside the same
// requests where nothing is wrong.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/client/transport.h"
#include "tests/bench/load.h"

namespace keelson::bench {

struct FaultOptions {
  int gets = 600, readers = 4;        // of each of three turns
  int gets_a_second = 500;            // of all readers: others have room left
  int watchers = 2000, objects = 50;  // of the definition that is deleted
  std::string only;                   // faults whose name has this part
  int port = 0;                       // of the API server
};

// Prints the times of reads alone, beside sound requests and beside faulty ones, in turns. Makes its own objects and removes
// them.
Result<> RunFaults(const LoadClient& client, client::Transport& transport, const FaultOptions& options);

}  // namespace keelson::bench
