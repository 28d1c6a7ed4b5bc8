// Watch streams. A watch holds no thread: events come from storage threads and go straight into the
// connection's queue; one thread, Run(), ends watches whose time is up and puts away what is over.
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
  // A watch that says nothing of its end ends after one to two times `min_timeout`.
  explicit WatchManager(registry::Registry& registry,
                        std::chrono::seconds min_timeout = std::chrono::seconds(1800),
                        Clock& clock = Clock::Real());
  ~WatchManager();

  // Answers the request with a stream, or with an error.
  void Start(Context& context, const registry::ListOptions& options);
  void Run(std::stop_token stop);
  // Ends every watch that is open, in order: clients go elsewhere, or come back.
  void EndAll();
  size_t size() const;
  // How many of them would be told of a write.
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
