// --leader-elect*: leader election among processes of one role.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "lib/client/leader_election.h"

namespace CLI {
class App;
}

namespace keelson::controlplane {

struct LeaderFlags {
  // Unset: enabled, except in a process with an API server and an own etcd that no other can join.
  std::optional<bool> elect;
  std::chrono::milliseconds lease_duration{15000}, renew_deadline{10000}, retry_period{2000};
  std::string resource_lock = "leases";
  std::string resource_name;  // empty: upstream's name of the role's program
  std::string resource_namespace = "kube-system";
  std::set<std::string, std::less<>> given;  // the flags on the command line, without "--"
};

void AddLeaderFlags(CLI::App& app, LeaderFlags& flags);
// Sets `given`. Call after parsing.
void FinishLeaderFlags(const CLI::App& app, LeaderFlags& flags);
// For the role of upstream's `program`. kInvalid for inconsistent durations.
Result<client::LeaderElectionOptions> LeaderOptionsOf(const LeaderFlags& flags, const std::string& program);

}  // namespace keelson::controlplane
