// Follows the policies of the whole cluster of one kind, as soon as the API server has them: they are custom resources,
// which come and go with their CustomResourceDefinition (clusternetworkpolicies.yaml). Reports in their status what is
// not enforced.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "cni/agent/policy/cluster_policy.h"
#include "lib/base/clock.h"
#include "lib/client/transport.h"

namespace keelson::cni::agent {

struct ClusterPolicyResource {
  ClusterPolicyKind kind;
  const char* plural;
  std::vector<std::string> versions;  // the first that the API server has counts
  std::chrono::milliseconds look;     // how often to look for a resource that is not there
};
ClusterPolicyResource ClusterNetworkPolicies(std::chrono::milliseconds look = std::chrono::seconds(5));
// Of v1alpha1: users who have them still are few, so these are looked for less often.
ClusterPolicyResource AdminNetworkPolicies(std::chrono::milliseconds look = std::chrono::seconds(30));
ClusterPolicyResource BaselineAdminNetworkPolicies(std::chrono::milliseconds look = std::chrono::seconds(30));

class ClusterPolicyWatch {
 public:
  // The whole list: all policies, or none when there is no such resource.
  using Found = std::function<void(std::map<std::string, policy::ClusterPolicy, std::less<>>)>;
  ClusterPolicyWatch(std::shared_ptr<client::Transport> transport, ClusterPolicyResource resource,
                     Found found, Clock& clock = Clock::Real())
      : transport_(std::move(transport)),
        resource_(std::move(resource)),
        found_(std::move(found)),
        clock_(clock) {}

  // Until `stop`, on a thread of its own. While the API server is away or refuses the list, what is known stays.
  Result<> Run(std::stop_token stop);

 private:
  // The path of the resource; empty: the API server does not have it.
  Result<std::string> Find(const std::stop_token& stop);
  // Lists, tells, and waits for a change.
  Result<> Follow(const std::string& path, const std::stop_token& stop);
  Result<ClusterPolicyList> List(const std::string& path, const std::stop_token& stop);
  Result<> AwaitChange(const std::string& path, const std::string& version, const std::stop_token& stop);
  void ReportStatus(const std::string& path, const ClusterPolicyList& list, const std::stop_token& stop);

  const std::shared_ptr<client::Transport> transport_;
  const ClusterPolicyResource resource_;
  const Found found_;
  Clock& clock_;
};

}  // namespace keelson::cni::agent
