// The services of kube-controlplane, in order of start:
//
//   etcd (unless --etcd-servers) -> storage -> apiserver -> https -> scheduler, controllers
//
// Scheduler and controllers: role_services.h.
#include <memory>
#include <thread>

#include "controlplane/apiserver/endpoints/request_metrics.h"
#include "controlplane/apiserver/peers/peer_leases.h"
#include "controlplane/apiserver/request/browser_headers.h"
#include "controlplane/apiserver/server.h"
#include "controlplane/apiserver_options.h"
#include "controlplane/auth_services.h"
#include "controlplane/etcd/alarms.h"
#include "controlplane/etcd/client.h"
#include "controlplane/etcd/end_of_process.h"
#include "controlplane/etcd/supervisor.h"
#include "controlplane/etcd_events.h"
#include "controlplane/options/flags.h"
#include "controlplane/options/option_values.h"
#include "controlplane/options/options.h"
#include "controlplane/options/tls_options.h"
#include "controlplane/registry/registry.h"
#include "controlplane/role_services.h"
#include "controlplane/scheduler_config.h"
#include "controlplane/storage/store.h"
#include "controlplane/storage/watch_cache_metrics.h"
#include "controlplane/storage_options.h"
#include "lib/base/build_info.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/base/signals.h"
#include "lib/component/program.h"
#include "lib/http/server/file_reloader.h"
#include "lib/http/server/server.h"
#include "lib/k8s/validation_settings.h"
#include "lib/linux/notify.h"
#include "lib/metrics/disable.h"
#include "lib/metrics/metrics.h"

namespace keelson::controlplane {
namespace {

// More than the API's limit, so that the API server rejects larger bodies with a Status.
constexpr size_t kMaxBody = 16u << 20;

// Objects that live as long as the process, created before the first service runs.
struct ControlPlane {
  std::unique_ptr<etcd::Supervisor> etcd;
  std::shared_ptr<etcd::Client> etcd_client;
  std::unique_ptr<apiserver::PeerLeases> peer_leases;
  std::unique_ptr<etcd::AlarmFollower> etcd_alarms;
  std::unique_ptr<storage::Store> store;
  std::unique_ptr<registry::Registry> registry;
  std::unique_ptr<apiserver::ApiServer> apiserver;
  std::unique_ptr<http::Server> https;
  http::FileReloader files;
  Roles roles;
  std::stop_source ending;  // by a signal
};

Result<> MakeEtcd(const Options& options, ControlPlane& plane) {
  KEELSON_RETURN_IF_ERROR(CheckEtcdFlags(options));
  etcd::ClientOptions client;
  if (options.etcd_servers.empty()) {
    KEELSON_ASSIGN_OR_RETURN(etcd::SupervisorOptions supervisor, SupervisorOptionsOf(options));
    KEELSON_RETURN_IF_ERROR(MakeDirs(supervisor.data_dir, 0700));
    KEELSON_ASSIGN_OR_RETURN(plane.etcd, etcd::Supervisor::Make(std::move(supervisor)));
    client = plane.etcd->client_options();
  } else {
    KEELSON_ASSIGN_OR_RETURN(client, EtcdClientOptionsOf(options));
  }
  KEELSON_ASSIGN_OR_RETURN(client.prefix, EtcdPrefix(options.etcd_prefix));
  plane.etcd_alarms =
      std::make_unique<etcd::AlarmFollower>(client, plane.etcd ? etcd::kQuotaBytes : int64_t{0});
  plane.etcd_client = std::make_shared<etcd::Client>(std::move(client));
  storage::TellDatabaseSize(plane.etcd_client);
  return {};
}

// Files that are reloaded when they change.
void WatchFiles(const Options& options, std::vector<std::string> tls_files, ControlPlane& plane) {
  WatchAuthFiles(options, *plane.apiserver, plane.files);
  plane.files.Add({"proxy-client-cert-file",
                   {options.proxy_certificate_file, options.proxy_key_file},
                   [&options, &plane]() -> Result<> {
                     KEELSON_ASSIGN_OR_RETURN(apiserver::ProxyCertificate fresh,
                                              ReadProxyCertificate(options));
                     plane.apiserver->SetProxyCertificate(std::move(fresh));
                     return {};
                   }});
  plane.files.Add({"tls-cert-file", std::move(tls_files), [&plane] { return plane.https->ReloadTls(); }});
}

Result<> MakeApiServer(const Options& options, ControlPlane& plane) {
  KEELSON_ASSIGN_OR_RETURN(
      http::Handler handler,
      apiserver::WithBrowserHeaders(options.cors_allowed_origins, options.transport_security_directives,
                                    [&plane](auto request, auto writer) {
                                      plane.apiserver->Handle(std::move(request), std::move(writer));
                                    }));
  KEELSON_ASSIGN_OR_RETURN(crypto::TlsServerOptions tls, TlsOptionsOf(options));
  KEELSON_RETURN_IF_ERROR(MakeEtcd(options, plane));
  KEELSON_ASSIGN_OR_RETURN(registry::Config config, RegistryConfigOf(options));
  KEELSON_ASSIGN_OR_RETURN(apiserver::ApiServerOptions api, ApiServerOptionsOf(options));
  KEELSON_ASSIGN_OR_RETURN(storage::Store::Options storage, StoreOptionsOf(options));
  if (storage.encryption) api.check_kms = [encryption = storage.encryption] { return encryption->Health(); };
  api.etcd_alarms = [&alarms = *plane.etcd_alarms]() -> Result<std::vector<std::string>> {
    KEELSON_ASSIGN_OR_RETURN(const std::vector<etcd::Alarm> all, alarms.Alarms());
    std::vector<std::string> out;
    for (const etcd::Alarm& alarm : all) out.push_back(etcd::AlarmText(alarm));
    return out;
  };
  if (api.gate_on("UnknownVersionInteroperabilityProxy")) {
    plane.peer_leases = std::make_unique<apiserver::PeerLeases>(plane.etcd_client, storage.json);
    api.peers.leases = plane.peer_leases.get();
  }
  plane.store = std::make_unique<storage::Store>(plane.etcd_client, std::move(storage));
  plane.registry = std::make_unique<registry::Registry>(*plane.store, std::move(config));
  plane.apiserver = std::make_unique<apiserver::ApiServer>(std::move(api), *plane.registry, *plane.store);

  http::ServerOptions server;
  server.address = options.bind_address;
  server.port = static_cast<uint16_t>(options.secure_port);
  server.tls = std::move(tls);
  server.tls->proxy_ca_file = options.auth.requestheader_client_ca_file;
  std::vector<std::string> tls_files = TlsFilesOf(*server.tls);
  SetConnections(options, server);
  KEELSON_ASSIGN_OR_RETURN(server.goaway_chance, GoawayChance(options));
  server.io_threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  server.worker_threads = kApiServerWorkers;
  server.max_body = kMaxBody;
  server.on_handshake_error = [&errors = apiserver::HandshakeErrors()] { errors.Increment(); };
  server.streams_body = [&apiserver = *plane.apiserver](const http::ServerRequest& request) {
    return apiserver.StreamsBody(request);
  };
  auto listening = http::Server::Listen(std::move(server), std::move(handler));
  if (!listening) return listening.error();
  plane.https = std::move(*listening);
  WatchFiles(options, std::move(tls_files), plane);
  return {};
}

// First /readyz fails for load balancers, then watches end; requests in flight may finish.
Result<> ServeUntil(std::stop_token stop, const Options& options, ControlPlane& plane) {
  constexpr std::chrono::seconds kGrace{5};
  std::stop_source end;
  Mutex mutex;
  CondVar changed;
  std::stop_callback on_stop(stop, [&] {
    MutexLock lock(mutex);
    changed.notify_all();
  });
  std::jthread ending([&](std::stop_token failed) {
    {
      MutexLock lock(mutex);
      changed.wait(mutex, failed, [&] { return stop.stop_requested(); });
      if (!stop.stop_requested()) return;
      plane.apiserver->BeginShutdown();
      changed.wait_for(mutex, failed, options.shutdown_delay, [] { return false; });
    }
    plane.apiserver->EndWatches();
    end.request_stop();
  });
  return plane.https->Run(end.get_token(), kGrace);
}

void AddApiServer(ServiceGroup& group, const Options& options, ControlPlane& plane) {
  std::vector<std::string> storage_needs;
  if (plane.etcd) {
    group.Add({"etcd", {}, [&plane](std::stop_token stop, ServiceGroup::Ready ready) {
                 return plane.etcd->Run(stop, ready);
               }});
    storage_needs.push_back("etcd");
  }
  // It stops after all that needs etcd.
  group.Add({"storage", storage_needs, [&plane](std::stop_token stop, ServiceGroup::Ready ready) {
               std::jthread closing([&plane](const std::stop_token& over) {
                 etcd::CloseWhenSilent(*plane.etcd_client, plane.ending.get_token(), over);
               });
               return plane.store->Run(stop, ready);
             }});
  group.Add({"apiserver", {"storage"}, [&plane](std::stop_token stop, ServiceGroup::Ready ready) {
               return plane.apiserver->Run(stop, ready);
             }});
  group.Add(
      {"https", {"apiserver"}, [&plane, &options](std::stop_token stop, ServiceGroup::Ready ready) {
         log::Info("API server listens", {{"address", options.bind_address}, {"port", plane.https->port()}});
         ready();
         std::jthread reload([&](std::stop_token token) { plane.files.Run(token); });
         return ServeUntil(stop, options, plane);
       }});
}

k8s::Programs ProgramsOf(const Options& options) {
  k8s::Programs out = 0;
  if (options.Has("apiserver")) out |= k8s::Program::kApiServer;
  if (options.Has("controllers")) out |= k8s::Program::kControllers;
  if (options.Has("scheduler")) out |= k8s::Program::kScheduler;
  return out;
}

// What systemd's watchdog asks: /livez, answered by the whole path of a request but sockets. etcd is no part of it.
Result<> CheckApiServer(client::Transport& transport) {
  constexpr std::chrono::seconds kPatience{10};
  KEELSON_ASSIGN_OR_RETURN(const client::ApiResponse answer,
                           transport.Do({.target = "/livez"}, kPatience, {}));
  if (answer.status == 200) return {};
  return Error(Code::kUnavailable, "/livez: " + std::to_string(answer.status) + " " + answer.body);
}

void AddNotifier(ServiceGroup& group, ControlPlane& plane) {
  std::shared_ptr<client::Transport> transport;
  if (plane.apiserver) {
    transport = plane.apiserver->TransportFor(apiserver::ApiServerUser(), "systemd-watchdog");
  }
  group.Add(linux::SystemdNotifier({plane.apiserver ? "https" : "pages"}, [&plane, transport]() -> Result<> {
    if (transport) KEELSON_RETURN_IF_ERROR(CheckApiServer(*transport));
    return CheckElections(plane.roles);
  }));
}

// As ServiceGroup::RunUntilSignal(); a signal is also told to what is to know of it before its own turn to stop.
int RunUntilSignal(ServiceGroup& group, std::stop_source ending) {
  BlockSignals();
  Result<> result;
  {
    StopOnSignal on_signal([&ending] { ending.request_stop(); });
    result = group.Run(ending.get_token());
  }
  if (!result) log::Error("Stopping after a failure", {{"err", result.error()}});
  return result ? 0 : 1;
}

constexpr char kCannotStart[] = "Cannot start the control plane";

}  // namespace

int RunControlPlane(const Options& options) {
  if (Result<> set = component::StartLogging({options.logging_format, options.verbosity}); !set) {
    return component::ExitCode(set, kCannotStart);
  }
  if (Result<> checked = k8s::CheckFeatureGates(options.feature_gates); !checked) {
    return component::ExitCode(checked, kCannotStart);
  }
  if (Result<> checked = CheckServerGates(options); !checked) {
    return component::ExitCode(checked, kCannotStart);
  }
  TellBuild();
  if (!options.write_config_to.empty()) {
    return component::ExitCode(WriteSchedulerConfig(options), "Cannot write the configuration");
  }
  metrics::Disable(options.disabled_metrics);
  k8s::TellFeatureGates(options.feature_gates, ProgramsOf(options));
  component::TellFlagsWithoutEffect(options.without_effect);
  k8s::ValidationSettings validation = k8s::ValidationSettingsOf(options.feature_gates);
  validation.allow_privileged = options.allow_privileged || !options.Has("apiserver");
  k8s::SetValidationSettings(validation);
  ControlPlane plane;
  ServiceGroup group;
  if (options.Has("apiserver")) {
    if (Result<> made = MakeApiServer(options, plane); !made) {
      return component::ExitCode(made, "Cannot start the API server");
    }
    AddApiServer(group, options, plane);
    AddEtcdEvents(group, *plane.etcd_alarms,
                  plane.apiserver->TransportFor(apiserver::ApiServerUser(), "kube-apiserver"));
  }
  if (Result<> added = AddRoles(group, options, plane.apiserver.get(), plane.roles); !added) {
    return component::ExitCode(added, kCannotStart);
  }
  AddNotifier(group, plane);
  return RunUntilSignal(group, plane.ending);
}

}  // namespace keelson::controlplane
