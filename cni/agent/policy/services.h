// The parts of the daemon that enforce network policies, connected.
#pragma once

#include <functional>
#include <memory>

#include "cni/agent/policy/cluster_policy_watch.h"
#include "cni/agent/policy/gate.h"
#include "cni/agent/policy/syncer.h"
#include "cni/agent/policy/watch.h"
#include "lib/base/service_group.h"
#include "lib/client/events.h"

namespace keelson::cni::agent {

class PolicyServices {
 public:
  struct Agent {
    std::function<Result<policy::Node>()> node;                // this one; kUnavailable: not known yet
    std::function<void(const Result<>& result)> on_sync = {};  // as PolicySources::on_sync
    std::string node_name = {};                                // of the source of events
  };
  // Opens its sockets in the calling thread's network namespace.
  static Result<std::unique_ptr<PolicyServices>> Open(const std::string& bridge,
                                                      const std::shared_ptr<client::Transport>& transport,
                                                      Agent agent, PolicySyncerOptions options = {});
  // Thread safe; this node may be one of them. Policies wait for the first call.
  void NodesChanged(policy::ClusterNodes nodes) {
    watch_.SetNodes(std::move(nodes));
    syncer_->Changed();
  }
  void AddTo(ServiceGroup& group);

 private:
  PolicyServices(const std::shared_ptr<client::Transport>& transport, const std::string& node_name)
      : events_(client::RestClient(transport), "kube-cni", node_name),
        watch_(transport, [this] { syncer_->Changed(); }),
        cluster_policies_(transport, ClusterNetworkPolicies(),
                          Take(ClusterPolicyKind::kClusterNetworkPolicy)),
        admin_policies_(transport, AdminNetworkPolicies(), Take(ClusterPolicyKind::kAdminNetworkPolicy)),
        baseline_policies_(transport, BaselineAdminNetworkPolicies(),
                           Take(ClusterPolicyKind::kBaselineAdminNetworkPolicy)) {}
  ClusterPolicyWatch::Found Take(ClusterPolicyKind kind) {
    return [this, kind](auto found) { watch_.SetClusterPolicies(kind, std::move(found)); };
  }
  void Record(const policy::Pod& pod, std::string_view reason, const std::string& message);
  client::EventRecorder events_;
  std::unique_ptr<PolicySyncer> syncer_;
  std::unique_ptr<PolicyGate> gate_;
  PolicyWatch watch_;
  ClusterPolicyWatch cluster_policies_, admin_policies_, baseline_policies_;
};

}  // namespace keelson::cni::agent
