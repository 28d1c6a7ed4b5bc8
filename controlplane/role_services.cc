#include "controlplane/role_services.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "controlplane/component_server.h"
#include "controlplane/controllers/controllers.h"
#include "controlplane/fence.h"
#include "controlplane/options/option_values.h"
#include "controlplane/scheduler/scheduler.h"
#include "controlplane/scheduler_config.h"
#include "lib/api/duration.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/base/text.h"
#include "lib/client/account_transport.h"
#include "lib/client/transport.h"

namespace keelson::controlplane {
namespace {

constexpr char kScheduler[] = "kube-scheduler", kControllers[] = "kube-controller-manager";
// How long after the Lease expired a stuck leader counts as unhealthy.
constexpr std::chrono::seconds kElectionTolerance{20};

using Run = std::function<Result<>(std::stop_token stop, ServiceGroup::Ready ready)>;

// The program name is the field manager.
std::string UserAgent(const std::string& program) { return program + "/keelson"; }

Result<client::RestConfig> ConfigFor(const std::string& kubeconfig, const std::string& program,
                                     const std::string& master) {
  if (kubeconfig.empty()) {
    return Error(Code::kInvalid, "--kubeconfig is needed where no API server is in the process");
  }
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig config, client::LoadKubeconfig(kubeconfig));
  config.user_agent = UserAgent(program);
  if (!master.empty()) config.server = master;
  return config;
}

// How a role reaches the API: in-process as its own user, or through --kubeconfig.
Result<std::shared_ptr<client::Transport>> TransportFor(const Options& options,
                                                        apiserver::ApiServer* apiserver,
                                                        const std::string& program) {
  if (apiserver) {
    return apiserver->TransportFor(
        {"system:" + program, "", {std::string(apiserver::kGroupAuthenticated)}, {}}, UserAgent(program));
  }
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig config, ConfigFor(options.kubeconfig, program, options.master));
  return client::NewHttpTransport(config);
}

scheduler::Options SchedulerOptions(const SchedulerRole& role) {
  const Options& options = role.options;
  scheduler::Options out;
  out.config = role.config;
  out.pod_max_in_unschedulable_pods_duration = options.max_unschedulable;
  if (options.scheduler_debug_port != 0) {
    out.debug_host = "127.0.0.1";
    out.debug_port = static_cast<uint16_t>(options.scheduler_debug_port);
  }
  return out;
}

// ---- controllers ----

// A client per ServiceAccount of the controllers.
Result<std::function<client::RestClient(const std::string&)>> AccountClients(
    const Options& options, apiserver::ApiServer* apiserver, client::RestClient asker,
    std::shared_ptr<const Fence> fence) {
  client::RestConfig config;
  if (!apiserver) {
    KEELSON_ASSIGN_OR_RETURN(config, ConfigFor(options.kubeconfig, kControllers, options.master));
  }
  auto made = std::make_shared<std::map<std::string, client::RestClient>>();
  return [=](const std::string& account) {
    auto it = made->find(account);
    if (it != made->end()) return it->second;
    std::shared_ptr<client::Transport> transport;
    if (apiserver) {
      transport = apiserver->TransportFor({"system:serviceaccount:kube-system:" + account,
                                           "",
                                           {"system:serviceaccounts", "system:serviceaccounts:kube-system",
                                            std::string(apiserver::kGroupAuthenticated)},
                                           {}},
                                          UserAgent(kControllers));
    } else {
      transport = client::NewAccountTransport(config, asker, "kube-system", account);
    }
    return made->emplace(account, client::RestClient(Fenced(std::move(transport), fence))).first->second;
  };
}

Result<controllers::Options> ControllerOptions(const Options& options, apiserver::ApiServer* apiserver,
                                               const client::RestClient& api,
                                               std::shared_ptr<const Fence> fence) {
  controllers::Options out = options.manager;
  std::vector<std::string> selected = options.controllers;
  if (!options.enable_garbage_collector) selected.insert(selected.begin(), "-garbage-collector-controller");
  KEELSON_ASSIGN_OR_RETURN(out.selection, controllers::Selection::Parse(selected));
  out.aggregate_cluster_roles = !apiserver;
  out.pod_certificates = k8s::FeatureEnabled(options.feature_gates, "PodCertificateRequest");
  out.storage_migrations = k8s::FeatureEnabled(options.feature_gates, "StorageVersionMigrator");
  const std::string& ca_file = options.root_ca_file.empty() ? options.client_ca_file : options.root_ca_file;
  KEELSON_ASSIGN_OR_RETURN(out.root_ca_pem, ReadIfSet(ca_file));
  const std::string& key_file = options.service_account_private_key_file.empty()
                                    ? options.service_account_signing_key_file
                                    : options.service_account_private_key_file;
  KEELSON_ASSIGN_OR_RETURN(out.service_account_key_pem, ReadIfSet(key_file));
  KEELSON_ASSIGN_OR_RETURN(out.signing, SigningOf(options.signing));
  if (options.use_service_account_credentials) {
    KEELSON_ASSIGN_OR_RETURN(out.client_for, AccountClients(options, apiserver, api, std::move(fence)));
  }

  if (out.pod_autoscaler.sync_period.count() <= 0) {
    return Error(Code::kInvalid, "--horizontal-pod-autoscaler-sync-period must be more than 0");
  }
  if (out.resource_quota_sync_period.count() <= 0) {
    return Error(Code::kInvalid, "--resource-quota-sync-period must be more than 0");
  }
  if (out.node_monitor_period.count() <= 0) {
    return Error(Code::kInvalid, "--node-monitor-period must be more than 0");
  }
  const std::pair<const char*, int> counts[] = {
      {"max-endpoints-per-slice", out.max_endpoints_per_slice},
      {"mirroring-max-endpoints-per-subset", out.max_mirrored_per_subset}};
  for (const auto& [flag, count] : counts) {
    if (count >= 1 && count <= 1000) continue;
    return Error(Code::kInvalid, fmt::format("{} must not be {}, but got {}", flag,
                                             count < 1 ? "less than 1" : "more than 1000", count));
  }
  out.cluster_cidrs = SplitList(options.cluster_cidr);
  out.service_cidrs = SplitList(options.service_cluster_ip_range);
  return out;
}

// ---- election ----

// Another process may lead now: no thread may write any more.
[[noreturn]] void EndProcess() {
  log::Error("Leader election lost: the process ends");
  std::_Exit(1);
}

// Ends the process unless it is destroyed in time.
class Patience {
 public:
  Patience()
      : waiting_([](const std::stop_token& over) {
          Mutex mutex;
          CondVar never;
          MutexLock lock(mutex);
          never.wait_for(mutex, over, kEndOfRole, [] { return false; });
          if (over.stop_requested()) return;
          log::Error("A role that has lost its election does not stop");
          EndProcess();
        }) {}

 private:
  static constexpr std::chrono::seconds kEndOfRole{60};
  std::jthread waiting_;
};

bool MustElect(const Options& options, bool with_apiserver) {
  // With an etcd of its own that no other joins there is no second API server, so there is no second process.
  const bool has_peers = !options.etcd_servers.empty() || !options.etcd_address.empty();
  return options.leader.elect.value_or(!with_apiserver || has_peers);
}

// Runs the role while this process leads. A process of roles alone ends when it has lost its election, as upstream's. One
// with an API server, and perhaps a member of etcd, stops the role behind its fence and stands for election again: the
// others need both.
Result<Run> Led(const Options& options, const std::string& program,
                std::shared_ptr<client::Transport> transport, const std::shared_ptr<Fence>& fence,
                bool with_apiserver, Roles& roles, Run run) {
  KEELSON_ASSIGN_OR_RETURN(client::LeaderElectionOptions election, LeaderOptionsOf(options.leader, program));
  client::RestClient api(std::move(transport), election.renew_deadline / 2);
  Roles::Election& made = roles.elections.emplace_back();
  made.events = std::make_unique<client::EventRecorder>(api, program);
  made.elector = std::make_unique<client::LeaderElector>(api, *made.events, std::move(election));
  return [events = made.events.get(), elector = made.elector.get(), run = std::move(run), fence,
          with_apiserver](std::stop_token stop, ServiceGroup::Ready ready) {
    ready();  // a second process only waits
    std::jthread recording([events](std::stop_token s) { events->Run(s); });
    for (;;) {
      std::optional<Patience> patience;
      auto lost = [&] {
        if (!with_apiserver) EndProcess();
        fence->Close();
        patience.emplace();
      };
      fence->Open();
      Result<> done = elector->Run(
          stop, [&run](std::stop_token s) { return run(s, [] {}); }, lost);
      if (fence->open()) return done;
      if (stop.stop_requested()) return Result<>();
    }
  };
}

// ---- pages ----

std::string GoDuration(std::chrono::nanoseconds duration) { return api::FormatGoDuration(duration.count()); }

std::string Configz(const Options& options, const Options& of_scheduler) {
  const controllers::Options& manager = options.manager;
  auto election = [](const Options& of, const char* program, const char* form) {
    const LeaderFlags& leader = of.leader;
    return fmt::format(fmt::runtime(form), MustElect(of, false), GoDuration(leader.lease_duration),
                       GoDuration(leader.renew_deadline), GoDuration(leader.retry_period),
                       leader.resource_lock, leader.resource_name.empty() ? program : leader.resource_name,
                       leader.resource_namespace);
  };
  std::string out;
  if (options.Has("controllers")) {
    std::string names;
    for (const std::string& word : options.controllers) names += (names.empty() ? "\"" : ",\"") + word + '"';
    out += fmt::format(
        R"("kubecontrollermanager.config.k8s.io":{{"Generic":{{"Address":"{}","Port":{},"LeaderElection":{},)"
        R"("Controllers":[{}]}},"KubeCloudShared":{{"UseServiceAccountCredentials":{},"AllocateNodeCIDRs":{},)"
        R"("ClusterCIDR":"{}","NodeMonitorPeriod":"{}"}},"NodeLifecycleController":{{"NodeEvictionRate":{},)"
        R"("SecondaryNodeEvictionRate":{},"NodeStartupGracePeriod":"{}","NodeMonitorGracePeriod":"{}",)"
        R"("LargeClusterSizeThreshold":{},"UnhealthyZoneThreshold":{}}}}})",
        options.bind_address, options.secure_port,
        election(options, kControllers,
                 R"({{"LeaderElect":{},"LeaseDuration":"{}","RenewDeadline":"{}","RetryPeriod":"{}",)"
                 R"("ResourceLock":"{}","ResourceName":"{}","ResourceNamespace":"{}"}})"),
        names, options.use_service_account_credentials, manager.allocate_node_cidrs, options.cluster_cidr,
        GoDuration(manager.node_monitor_period), manager.node_eviction_rate,
        manager.secondary_node_eviction_rate, GoDuration(manager.node_startup_grace_period),
        GoDuration(manager.node_monitor_grace_period), manager.large_cluster_size_threshold,
        manager.unhealthy_zone_threshold);
  }
  if (options.Has("scheduler")) {
    out += (out.empty() ? "" : ",") + std::string(R"("componentconfig":{"leaderElection":)") +
           election(of_scheduler, kScheduler,
                    R"({{"leaderElect":{},"leaseDuration":"{}","renewDeadline":"{}","retryPeriod":"{}",)"
                    R"("resourceLock":"{}","resourceName":"{}","resourceNamespace":"{}"}})") +
           "}";
  }
  return "{" + out + "}";
}

// ---- whom the pages trust ----

bool IsToLookUp(const Options& options) {
  return !options.authentication_skip_lookup && !options.authentication_kubeconfig.empty() &&
         (options.client_ca_file.empty() || options.auth.requestheader_client_ca_file.empty());
}

// Looks up what the cluster says of clients' certificates.
Result<> LookUp(const Options& options, const client::RestClient& api, Roles& roles) {
  KEELSON_ASSIGN_OR_RETURN(roles.lookup, AuthenticationLookup::Make(api));
  Result<> read = roles.lookup->ReadOnce();
  if (read) return {};
  if (!options.authentication_tolerate_lookup_failure.value_or(!options.Has("controllers"))) {
    return read.error().Wrap("unable to load configmap based request-header-client-ca-file");
  }
  log::Warn("Error looking up in-cluster authentication configuration", {{"err", read.error()}});
  log::Warn(
      "Continuing without authentication configuration: client certificates are refused until it can be "
      "read");
  log::Warn(
      "To require authentication configuration lookup to succeed, set "
      "--authentication-tolerate-lookup-failure=false");
  return {};
}

// Upstream's defaults: no header names a uid, since older servers would pass on what a client claims.
std::vector<std::string> Or(const std::vector<std::string>& given, const char* usual) {
  return given.empty() ? std::vector<std::string>{usual} : given;
}

// Flags win over what was looked up. Returns the flags of the server.
Options TrustOf(const Options& options, const Roles& roles, ComponentPages& pages) {
  Options out = options;
  AuthFlags& flags = out.auth;
  if (!flags.requestheader_client_ca_file.empty()) {
    apiserver::RequestHeaderOptions headers{flags.requestheader_client_ca_file,
                                            flags.requestheader_allowed_names,
                                            Or(flags.requestheader_username_headers, "x-remote-user"),
                                            flags.requestheader_uid_headers,
                                            Or(flags.requestheader_group_headers, "x-remote-group"),
                                            Or(flags.requestheader_extra_headers_prefix, "x-remote-extra-")};
    pages.request_header = [headers] { return headers; };
  } else if (roles.lookup) {
    flags.requestheader_client_ca_file = roles.lookup->proxy_ca_file();
    pages.request_header = [lookup = roles.lookup.get()] { return lookup->request_header(); };
  }
  if (roles.lookup && out.client_ca_file.empty()) out.client_ca_file = roles.lookup->client_ca_file();
  return out;
}

Result<> AddPages(ServiceGroup& group, const Options& options, const Options& of_scheduler, Roles& roles) {
  const std::string program = options.Has("controllers") ? kControllers : kScheduler;
  // Both may name the same file.
  const std::string& who =
      options.authentication_kubeconfig.empty() ? options.kubeconfig : options.authentication_kubeconfig;
  const std::string& may =
      options.authorization_kubeconfig.empty() ? options.kubeconfig : options.authorization_kubeconfig;
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig who_config, ConfigFor(who, program, ""));
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig may_config, ConfigFor(may, program, ""));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> who_transport,
                           client::NewHttpTransport(who_config));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> may_transport,
                           client::NewHttpTransport(may_config));
  roles.auth = std::make_unique<client::DelegatedAuth>(client::RestClient(who_transport),
                                                       client::RestClient(may_transport));
  if (IsToLookUp(options)) {
    KEELSON_RETURN_IF_ERROR(LookUp(options, client::RestClient(who_transport), roles));
  }
  ComponentPages pages;
  pages.component = program;
  pages.configz = Configz(options, of_scheduler);
  pages.flags = options.flags;
  pages.flagz = k8s::FeatureEnabled(options.feature_gates, "ComponentFlagz");
  pages.statusz = k8s::FeatureEnabled(options.feature_gates, "ComponentStatusz");
  pages.always_allow = options.authorization_always_allow_paths;
  if (options.Has("scheduler")) pages.resources = [page = roles.pod_resources] { return page->Print(); };
  for (const Roles::Election& election : roles.elections) {
    pages.checks.push_back({"leaderElection", [elector = election.elector.get()] {
                              return elector->Healthy(kElectionTolerance);
                            }});
  }
  const Options trusting = TrustOf(options, roles, pages);
  KEELSON_ASSIGN_OR_RETURN(roles.pages,
                           ListenForComponent(trusting, MakeComponentHandler(std::move(pages), *roles.auth)));
  // One at a time: what was read first must not come last.
  auto reload = [&roles, mutex = std::make_shared<Mutex>()] {
    MutexLock lock(*mutex);
    return roles.pages->ReloadTls();
  };
  roles.files.Add({"tls-cert-file",
                   {options.tls_certificate_file, options.tls_key_file, options.client_ca_file,
                    options.auth.requestheader_client_ca_file},
                   reload});
  group.Add({"pages", {}, [&roles, program, reload](std::stop_token stop, ServiceGroup::Ready ready) {
               log::Info("Pages are served", {{"component", program}, {"port", roles.pages->port()}});
               ready();
               std::jthread files([&](std::stop_token token) { roles.files.Run(token); });
               std::jthread follow([&](std::stop_token token) {
                 if (roles.lookup) roles.lookup->Follow(token, reload);
               });
               return roles.pages->Run(stop);
             }});
  return {};
}

}  // namespace

Result<> CheckElections(const Roles& roles) {
  for (const Roles::Election& election : roles.elections) {
    KEELSON_RETURN_IF_ERROR(election.elector->Healthy(kElectionTolerance));
  }
  return {};
}

Result<> AddRoles(ServiceGroup& group, const Options& given, apiserver::ApiServer* apiserver, Roles& roles) {
  SchedulerRole scheduler_role;
  scheduler_role.options = given;
  if (given.Has("scheduler")) {
    KEELSON_ASSIGN_OR_RETURN(scheduler_role, ReadSchedulerRole(given));
  }
  // A process that is a scheduler alone is set by its file.
  const Options& options = given.Has("controllers") ? given : scheduler_role.options;
  std::vector<std::string> needs;
  if (apiserver) needs.push_back("https");
  if (options.Has("scheduler") && options.Has("controllers") && !options.leader.resource_name.empty() &&
      MustElect(options, apiserver)) {
    return Error(Code::kInvalid, "--leader-elect-resource-name names one Lease, and there are two roles");
  }
  auto add = [&](const char* service, const char* program, const Options& own,
                 std::shared_ptr<client::Transport> transport, const std::shared_ptr<Fence>& fence,
                 Run run) -> Result<> {
    if (MustElect(own, apiserver)) {
      KEELSON_ASSIGN_OR_RETURN(
          run, Led(own, program, std::move(transport), fence, apiserver != nullptr, roles, std::move(run)));
    }
    group.Add({service, needs, std::move(run)});
    return {};
  };
  if (options.Has("scheduler")) {
    const Options& own = scheduler_role.options;
    KEELSON_ASSIGN_OR_RETURN(auto transport, TransportFor(own, apiserver, kScheduler));
    const auto fence = std::make_shared<Fence>();
    client::RestClient api(Fenced(transport, fence));
    scheduler::Options settings = SchedulerOptions(scheduler_role);
    settings.pod_resources = roles.pod_resources;
    KEELSON_RETURN_IF_ERROR(add("scheduler", kScheduler, own, transport, fence,
                                [api, settings](std::stop_token stop, ServiceGroup::Ready ready) {
                                  return scheduler::Run(api, settings, stop, ready);
                                }));
  }
  if (options.Has("controllers")) {
    KEELSON_ASSIGN_OR_RETURN(auto transport, TransportFor(options, apiserver, kControllers));
    const auto fence = std::make_shared<Fence>();
    client::RestClient api(Fenced(transport, fence));
    KEELSON_ASSIGN_OR_RETURN(controllers::Options settings,
                             ControllerOptions(options, apiserver, api, fence));
    KEELSON_RETURN_IF_ERROR(add("controllers", kControllers, options, transport, fence,
                                [api, settings](std::stop_token stop, ServiceGroup::Ready ready) {
                                  return controllers::Run(api, settings, stop, ready);
                                }));
  }
  if (!apiserver && (options.Has("scheduler") || options.Has("controllers"))) {
    KEELSON_RETURN_IF_ERROR(AddPages(group, options, scheduler_role.options, roles));
  }
  return {};
}

}  // namespace keelson::controlplane
