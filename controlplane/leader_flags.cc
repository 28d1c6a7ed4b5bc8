#include "controlplane/leader_flags.h"

#include "controlplane/flag_adder.h"

namespace keelson::controlplane {

void AddLeaderFlags(CLI::App& app, LeaderFlags& flags) {
  const FlagAdder add{app};
  app.add_flag_function(
         "--leader-elect", [&flags](int64_t given) { flags.elect = given > 0; },
         "Have one process of several lead; by default wherever there may be several")
      ->default_str("true");
  add.Seconds("--leader-elect-lease-duration", flags.lease_duration_seconds,
              "How long others wait for a leader that is silent: 15s");
  add.Seconds("--leader-elect-renew-deadline", flags.renew_deadline_seconds,
              "How long a leader tries to renew before it gives up: 10s");
  add.Seconds("--leader-elect-retry-period", flags.retry_period_seconds,
              "How often the Lease is renewed or asked for: 2s");
  add("--leader-elect-resource-lock", flags.resource_lock, "What is locked")
      ->check(CLI::IsMember({"leases"}));
  add("--leader-elect-resource-name", flags.resource_name,
      "Name of the Lease; default: kube-controller-manager, kube-scheduler");
  add("--leader-elect-resource-namespace", flags.resource_namespace, "Namespace of the Lease");
}

Result<client::LeaderElectionOptions> LeaderOptionsOf(const LeaderFlags& flags, const std::string& program) {
  client::LeaderElectionOptions out;
  out.ns = flags.resource_namespace;
  out.name = flags.resource_name.empty() ? program : flags.resource_name;
  out.identity = client::NewIdentity();
  out.lease_duration = std::chrono::seconds(flags.lease_duration_seconds);
  out.renew_deadline = std::chrono::seconds(flags.renew_deadline_seconds);
  out.retry_period = std::chrono::seconds(flags.retry_period_seconds);
  if (Result<> valid = client::ValidateLeaderElection(out); !valid)
    return valid.error().Wrap("--leader-elect");
  return out;
}

}  // namespace keelson::controlplane
