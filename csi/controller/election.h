// Who leads: one Lease a role, under the name that the stock sidecar has for it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>

#include "csi/controller/config.h"
#include "lib/base/mutex.h"
#include "lib/client/events.h"
#include "lib/client/leader_election.h"
#include "lib/client/transport.h"

namespace keelson::csi::controller {

class Elections {  // thread safe
 public:
  Elections(const Config& config, std::shared_ptr<client::Transport> transport)
      : config_(config), transport_(std::move(transport)) {}

  // Runs `work` while the Lease is held. A Lease that is lost ends the process with code 1.
  Result<> Lead(const std::string& lease, client::EventRecorder& events, std::stop_token stop,
                const std::function<Result<>(std::stop_token stop)>& work);
  Result<> Healthy() const;  // for /healthz

 private:
  const Config& config_;
  const std::shared_ptr<client::Transport> transport_;
  mutable Mutex mutex_;
  std::set<const client::LeaderElector*> electors_ KEELSON_GUARDED_BY(mutex_);  // those at work
};

}  // namespace keelson::csi::controller
