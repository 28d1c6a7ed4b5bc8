// Writes that may keep a processor busy for long: large definitions of custom resources and large admission policies, whose
// schemas and expressions the server decodes, checks and compiles. They go one at a time, on a thread that leaves the processors
// to all others. A request that waits for its turn holds no thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/storage/store.h"
#include "lib/base/worker_pool.h"

namespace keelson::apiserver {

class SlowLane {  // thread safe
 public:
  // Whether the request belongs here. `context.resource` is set.
  static bool Takes(const Context& context, const storage::Store& store);

  // Runs `handle` in its turn, unless the client has gone by then; afterwards `done`. False: too much waits already.
  bool Submit(std::shared_ptr<Context> context, std::function<void()> handle, std::function<void()> done);

 private:
  std::atomic<size_t> waiting_bytes_{0};
  WorkerPool pool_{1};  // last: its thread uses the rest
};

}  // namespace keelson::apiserver
