// Scheduler and controllers as services: inside a process with an API server they reach it without a socket;
// alone they go by --kubeconfig and serve pages of their own. Where there may be several processes of a role,
// one leads.
#pragma once

#include <memory>
#include <vector>

#include "controlplane/apiserver/server.h"
#include "controlplane/options/options.h"
#include "controlplane/scheduler/types/pod_resources.h"
#include "lib/base/service_group.h"
#include "lib/client/delegated_auth.h"
#include "lib/client/events.h"
#include "lib/client/leader_election.h"
#include "lib/http/server/file_reloader.h"
#include "lib/http/server/server.h"

namespace keelson::controlplane {

// What lives as long as the process.
struct Roles {
  struct Election {
    std::unique_ptr<client::EventRecorder> events;
    std::unique_ptr<client::LeaderElector> elector;
  };
  std::vector<Election> elections;
  std::unique_ptr<client::DelegatedAuth> auth;
  std::unique_ptr<http::Server> pages;
  std::shared_ptr<scheduler::PodResourcesPage> pod_resources =
      std::make_shared<scheduler::PodResourcesPage>();
  http::FileReloader files;
};

// `apiserver` is null where none is in the process. `roles` outlives the group's run.
Result<> AddRoles(ServiceGroup& group, const Options& options, apiserver::ApiServer* apiserver, Roles& roles);

// --write-config-to: the configuration that a scheduler with these options has. kInvalid: --config makes no
// sense.
Result<> WriteSchedulerConfig(const Options& options);

}  // namespace keelson::controlplane
