// Scheduler and controllers as services. With an API server in the process they use an in-process transport;
// otherwise --kubeconfig, and they serve their own endpoints. Several processes of a role elect a leader.
#pragma once

#include <memory>
#include <vector>

#include "controlplane/apiserver/server.h"
#include "controlplane/cluster_authentication.h"
#include "controlplane/options/options.h"
#include "controlplane/scheduler/types/pod_resources.h"
#include "lib/base/service_group.h"
#include "lib/client/delegated_auth.h"
#include "lib/client/events.h"
#include "lib/client/leader_election.h"
#include "lib/http/server/file_reloader.h"
#include "lib/http/server/server.h"

namespace keelson::controlplane {

// Objects that live as long as the process.
struct Roles {
  struct Election {
    std::unique_ptr<client::EventRecorder> events;
    std::unique_ptr<client::LeaderElector> elector;
  };
  std::vector<Election> elections;
  std::unique_ptr<client::DelegatedAuth> auth;
  std::unique_ptr<AuthenticationLookup> lookup;  // null: flags say all
  std::unique_ptr<http::Server> pages;
  std::shared_ptr<scheduler::PodResourcesPage> pod_resources =
      std::make_shared<scheduler::PodResourcesPage>();
  http::FileReloader files;
};

// `apiserver` is null when the process has none. `roles` must outlive the run of the group.
Result<> AddRoles(ServiceGroup& group, const Options& options, apiserver::ApiServer* apiserver, Roles& roles);

// kUnavailable: an election that this process takes part in is stuck.
Result<> CheckElections(const Roles& roles);

}  // namespace keelson::controlplane
