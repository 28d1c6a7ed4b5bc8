// Watch streams. A watch holds no thread: storage threads write events into the connection's queue. The
// thread in Run() ends expired watches and removes closed ones.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/flowcontrol/watch_counts.h"
#include "controlplane/registry/registry.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

class WatchManager {
 public:
  // A watch without timeoutSeconds ends after a random time between one and two times `min_timeout`.
  explicit WatchManager(registry::Registry& registry,
                        std::chrono::seconds min_timeout = std::chrono::seconds(1800),
                        Clock& clock = Clock::Real());
  ~WatchManager();

  // Responds with a stream, or with an error.
  void Start(Context& context, const registry::ListOptions& options);
  void Run(std::stop_token stop);
  // Ends all open watches gracefully, so that clients reconnect.
  void EndAll();
  size_t size() const;
  // The number of watches that a write would notify.
  int InterestedIn(const RequestInfo& write) const { return counts_->InterestedIn(write); }

 private:
  class Session;
  struct Queue;

  registry::Registry& registry_;
  const std::chrono::seconds min_timeout_;
  Clock& clock_;
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<flowcontrol::WatchCounts> counts_ = std::make_shared<flowcontrol::WatchCounts>();
};

}  // namespace keelson::apiserver
