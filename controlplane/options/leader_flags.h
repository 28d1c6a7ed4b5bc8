// --leader-elect*: which of several processes of one role is at work.
#pragma once

#include <optional>
#include <string>

#include "lib/client/leader_election.h"

namespace CLI {
class App;
}

namespace keelson::controlplane {

struct LeaderFlags {
  // Unset: yes, but for a process with an API server on an etcd of its own, beside which there is no other.
  std::optional<bool> elect;
  std::chrono::milliseconds lease_duration{15000}, renew_deadline{10000}, retry_period{2000};
  std::string resource_lock = "leases";
  std::string resource_name;  // empty: the name of the program that the role is elsewhere
  std::string resource_namespace = "kube-system";
};

void AddLeaderFlags(CLI::App& app, LeaderFlags& flags);
// For the role that is `program` elsewhere. kInvalid when the times do not fit.
Result<client::LeaderElectionOptions> LeaderOptionsOf(const LeaderFlags& flags, const std::string& program);

}  // namespace keelson::controlplane
