// Watch streams. A watch holds no thread: events come from storage threads and go straight into the
// connection's queue; one thread, Run(), ends watches whose time is up and puts away what is over.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "controlplane/apiserver/handlers/context.h"
#include "controlplane/registry/registry.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

class WatchManager {
 public:
  explicit WatchManager(registry::Registry& registry, Clock& clock = Clock::Real());
  ~WatchManager();

  // Answers the request with a stream, or with an error.
  void Start(Context& context, const registry::ListOptions& options);
  void Run(std::stop_token stop);
  // Ends every watch that is open, in order: clients go elsewhere, or come back.
  void EndAll();
  size_t size() const;

 private:
  class Session;
  struct Queue;

  registry::Registry& registry_;
  Clock& clock_;
  std::shared_ptr<Queue> queue_;
};

}  // namespace keelson::apiserver
