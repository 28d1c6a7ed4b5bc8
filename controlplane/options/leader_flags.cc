#include "controlplane/options/leader_flags.h"
#include "lib/component/flag_adder.h"

namespace keelson::controlplane {

using component::FlagAdder;

void AddLeaderFlags(CLI::App& app, LeaderFlags& flags) {
  const FlagAdder add{app};
  app.add_flag_function(
         "--leader-elect", [&flags](int64_t given) { flags.elect = given > 0; },
         "Have one process of several lead; by default wherever there may be several")
      ->default_str("true");
  add("--leader-elect-lease-duration", flags.lease_duration,
      "How long others wait for a leader that is silent");
  add("--leader-elect-renew-deadline", flags.renew_deadline,
      "How long a leader tries to renew before it gives up");
  add("--leader-elect-retry-period", flags.retry_period, "How often the Lease is renewed or asked for");
  add("--leader-elect-resource-lock", flags.resource_lock, "What is locked")
      ->check(CLI::IsMember({"leases"}));
  add("--leader-elect-resource-name", flags.resource_name,
      "Name of the Lease; default: kube-controller-manager, kube-scheduler");
  add("--leader-elect-resource-namespace", flags.resource_namespace, "Namespace of the Lease");
}

void FinishLeaderFlags(const CLI::App& app, LeaderFlags& flags) {
  for (const char* name :
       {"leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline",
        "leader-elect-retry-period", "leader-elect-resource-name", "leader-elect-resource-namespace"}) {
    if (app.count(std::string("--") + name) > 0) flags.given.insert(name);
  }
}

Result<client::LeaderElectionOptions> LeaderOptionsOf(const LeaderFlags& flags, const std::string& program) {
  client::LeaderElectionOptions out;
  out.ns = flags.resource_namespace;
  out.name = flags.resource_name.empty() ? program : flags.resource_name;
  out.identity = client::NewIdentity();
  out.lease_duration = flags.lease_duration;
  out.renew_deadline = flags.renew_deadline;
  out.retry_period = flags.retry_period;
  if (Result<> valid = client::ValidateLeaderElection(out); !valid) {
    return valid.error().Wrap("--leader-elect");
  }
  return out;
}

}  // namespace keelson::controlplane
