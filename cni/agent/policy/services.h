// The parts of the daemon that enforce network policies, connected.
#pragma once

#include <functional>
#include <memory>

#include "cni/agent/policy/gate.h"
#include "cni/agent/policy/syncer.h"
#include "cni/agent/policy/watch.h"
#include "lib/base/service_group.h"

namespace keelson::cni::agent {

class PolicyServices {
 public:
  struct Agent {
    std::function<Result<policy::Node>()> node;                // this one; kUnavailable: not known yet
    std::function<void(const Result<>& result)> on_sync = {};  // as PolicySources::on_sync
  };
  // Opens its sockets in the calling thread's network namespace.
  static Result<std::unique_ptr<PolicyServices>> Open(const std::string& bridge,
                                                      std::shared_ptr<client::Transport> transport,
                                                      Agent agent, PolicySyncerOptions options = {});
  void NodeChanged() { syncer_->Changed(); }  // thread safe
  void AddTo(ServiceGroup& group);

 private:
  explicit PolicyServices(std::shared_ptr<client::Transport> transport)
      : watch_(std::move(transport), [this] { syncer_->Changed(); }) {}
  std::unique_ptr<PolicySyncer> syncer_;
  std::unique_ptr<PolicyGate> gate_;
  PolicyWatch watch_;
};

}  // namespace keelson::cni::agent
