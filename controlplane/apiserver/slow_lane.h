// Writes that may keep a processor busy for long: large definitions of custom resources and large admission policies, whose
// schemas and expressions the server decodes, checks and compiles. They go one at a time, on a thread that leaves the processors
// to all others. A request that waits for its turn holds no thread. It keeps its turn while it waits for webhooks and etcd: a slow
// webhook delays the others, and a webhook that itself writes a large definition waits until its timeout.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/storage/store.h"
#include "lib/base/worker_pool.h"
#include "lib/event/loop.h"

namespace keelson::apiserver {

class SlowLane {  // thread safe
 public:
  // Whether the request belongs here. `context.resource` is set.
  static bool Takes(const Context& context, const storage::Store& store);

  // Runs `handle` in its turn. A request whose client has gone, or whose deadline has passed, is refused instead. Afterwards
  // `done`. False: too much waits already.
  bool Submit(std::shared_ptr<Context> context, std::function<void()> handle, std::function<void()> done);

 private:
  // A thread has the priority of the one that starts it: the loop must not begin on the lane.
  const std::shared_ptr<event::Loop> loop_ = event::Loop::Shared();
  std::atomic<size_t> waiting_bytes_{0};
  WorkerPool pool_{1};  // last: its thread uses the rest
};

}  // namespace keelson::apiserver
