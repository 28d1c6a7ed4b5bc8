// Follows ClusterNetworkPolicies as soon as the API server has them: they are custom resources, which come and go
// with their CustomResourceDefinition (clusternetworkpolicies.yaml). Reports in their status what is not enforced.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "cni/agent/policy/cluster_policy.h"
#include "lib/base/clock.h"
#include "lib/client/transport.h"

namespace keelson::cni::agent {

class ClusterPolicyWatch {
 public:
  // The whole list: all policies, or none when there is no such resource.
  using Found = std::function<void(std::map<std::string, policy::ClusterPolicy, std::less<>>)>;
  // `look`: how often to look for a resource that is not there.
  ClusterPolicyWatch(std::shared_ptr<client::Transport> transport, Found found, Clock& clock = Clock::Real(),
                     std::chrono::milliseconds look = std::chrono::seconds(5))
      : transport_(std::move(transport)), found_(std::move(found)), clock_(clock), look_(look) {}

  // Until `stop`, on a thread of its own. While the API server is away or refuses the list, what is known stays.
  Result<> Run(std::stop_token stop);

 private:
  Result<bool> Exists(const std::stop_token& stop);
  // Lists, tells, and waits for a change.
  Result<> Follow(const std::stop_token& stop);
  Result<ClusterPolicyList> List(const std::stop_token& stop);
  Result<> AwaitChange(const std::string& version, const std::stop_token& stop);
  void ReportStatus(const ClusterPolicyList& list, const std::stop_token& stop);
  void WarnOfOthers(const std::stop_token& stop);

  const std::shared_ptr<client::Transport> transport_;
  const Found found_;
  Clock& clock_;
  const std::chrono::milliseconds look_;
  bool warned_ = false;  // of other versions
};

}  // namespace keelson::cni::agent
