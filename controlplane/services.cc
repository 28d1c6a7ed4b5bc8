// The services of kube-controlplane, in order of start:
//
//   etcd (unless --etcd-servers) -> storage -> apiserver -> https -> scheduler, controllers
//
// Scheduler and controllers: role_services.h.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/request_metrics.h"
#include "controlplane/apiserver/request/browser_headers.h"
#include "controlplane/apiserver/server.h"
#include "controlplane/audit_setup.h"
#include "controlplane/auth_services.h"
#include "controlplane/etcd/client.h"
#include "controlplane/etcd/supervisor.h"
#include "controlplane/options/flags.h"
#include "controlplane/options/option_values.h"
#include "controlplane/options/options.h"
#include "controlplane/options/tls_options.h"
#include "controlplane/registry/registry.h"
#include "controlplane/role_services.h"
#include "controlplane/scheduler_config.h"
#include "controlplane/storage/store.h"
#include "controlplane/storage/watch_cache_metrics.h"
#include "lib/base/build_info.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/ip.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/base/text.h"
#include "lib/component/program.h"
#include "lib/crypto/certificates.h"
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
constexpr int kWorkers = 48;
// Threads for requests that need no seat.
constexpr int kSpareWorkers = 8;

// The source address of packets to other hosts. Sends nothing.
std::string DefaultRouteAddress() {
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
  socklen_t size = sizeof address;
  char text[INET_ADDRSTRLEN];
  if (!fd || connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "127.0.0.1";
  }
  return inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
}

std::string AdvertiseAddress(const Options& options) {
  // Without a default route, use an address of this machine, whatever the bind address is.
  const auto elsewhere = [](const std::string& address) {
    const Result<IpAddress> ip = IpAddress::Parse(address);
    return ip && !ip->IsUnspecified() && !ip->IsLoopback();
  };
  for (const std::string* address : {&options.advertise_address, &options.bind_address}) {
    if (elsewhere(*address)) return *address;
  }
  return DefaultRouteAddress();
}

Result<registry::Config> RegistryConfig(const Options& options) {
  registry::Config config;
  config.service_cidrs = SplitList(options.service_cluster_ip_range);
  auto dash = options.service_node_port_range.find('-');
  if (config.service_cidrs.empty() || dash == std::string::npos) {
    return Error(Code::kInvalid, "--service-cluster-ip-range and --service-node-port-range must be ranges");
  }
  config.node_port_first = std::atoi(options.service_node_port_range.c_str());
  config.node_port_last = std::atoi(options.service_node_port_range.c_str() + dash + 1);
  if (config.node_port_first <= 0 || config.node_port_last < config.node_port_first ||
      config.node_port_last > 65535) {
    return Error(Code::kInvalid, "--service-node-port-range is no range of ports");
  }
  config.event_ttl = std::chrono::duration_cast<std::chrono::seconds>(options.event_ttl);
  return config;
}

Result<apiserver::RequestLimits> LimitsOf(const Options& options) {
  if (options.request_timeout.count() <= 0) {
    return Error(Code::kInvalid, "--request-timeout must be more than 0");
  }
  if (options.min_request_timeout_seconds < 0) {
    return Error(Code::kInvalid, "--min-request-timeout can not be negative value");
  }
  if (options.max_requests_inflight < 0 || options.max_mutating_requests_inflight < 0) {
    return Error(Code::kInvalid,
                 "--max-requests-inflight and --max-mutating-requests-inflight can not be "
                 "negative value");
  }
  apiserver::RequestLimits limits;
  limits.timeout = options.request_timeout;
  limits.min_watch_timeout = std::chrono::seconds(options.min_request_timeout_seconds);
  limits.priority_and_fairness = options.priority_and_fairness;
  limits.max_read_only = options.max_requests_inflight;
  limits.max_mutating = options.max_mutating_requests_inflight;
  const int seats = options.max_requests_inflight + options.max_mutating_requests_inflight;
  if (limits.priority_and_fairness && seats <= 0) {
    return Error(Code::kInvalid,
                 "--max-requests-inflight and --max-mutating-requests-inflight must not both be "
                 "0 with priority and fairness");
  }
  // Each request needs a thread, so more seats would be useless.
  limits.seats = std::min(seats, kWorkers - kSpareWorkers);
  return limits;
}

// For requests to extension API servers.
Result<apiserver::ProxyCertificate> ReadProxyCertificate(const Options& options) {
  apiserver::ProxyCertificate out;
  KEELSON_ASSIGN_OR_RETURN(out.certificate_pem, ReadIfSet(options.proxy_certificate_file));
  KEELSON_ASSIGN_OR_RETURN(out.key_pem, ReadIfSet(options.proxy_key_file));
  if (out.certificate_pem.empty() != out.key_pem.empty()) {
    return Error(Code::kInvalid,
                 "--proxy-client-cert-file and --proxy-client-key-file must be specified together");
  }
  if (!out.key_pem.empty() && !crypto::BelongTogether(out.certificate_pem, out.key_pem)) {
    return Error(Code::kInvalid, "--proxy-client-key-file is not the key of --proxy-client-cert-file");
  }
  return out;
}

Result<int> KubernetesNodePort(const Options& options) {
  const int port = options.kubernetes_service_node_port;
  if (port < 0 || port > 65535) {
    return Error(Code::kInvalid, fmt::format("--kubernetes-service-node-port {} must be between 0 and 65535, "
                                             "inclusive. If 0, the Kubernetes master service will be of type "
                                             "ClusterIP",
                                             port));
  }
  KEELSON_ASSIGN_OR_RETURN(const registry::Config config, RegistryConfig(options));
  if (port > 0 && (port < config.node_port_first || port > config.node_port_last)) {
    return Error(Code::kInvalid, fmt::format("kubernetes service port range {} doesn't contain {}",
                                             options.service_node_port_range, port));
  }
  return port;
}

Result<apiserver::ApiServerOptions> ApiServerOptionsOf(const Options& options) {
  apiserver::ApiServerOptions out;
  KEELSON_RETURN_IF_ERROR(ReadAuthOptions(options, out));
  KEELSON_ASSIGN_OR_RETURN(out.backends.kubelet_certificate_pem, ReadIfSet(options.kubelet_certificate_file));
  KEELSON_ASSIGN_OR_RETURN(out.backends.kubelet_key_pem, ReadIfSet(options.kubelet_key_file));
  KEELSON_ASSIGN_OR_RETURN(out.backends.kubelet_ca_pem, ReadIfSet(options.kubelet_ca_file));
  out.backends.kubelet_address_types = options.kubelet_address_types;
  out.backends.connect_timeout = options.kubelet_timeout;
  KEELSON_ASSIGN_OR_RETURN(out.proxy_certificate, ReadProxyCertificate(options));
  out.reject_extension_redirects = options.reject_extension_redirects;
  KEELSON_ASSIGN_OR_RETURN(out.enablement, apiserver::ApiEnablement::Parse(options.runtime_config));
  KEELSON_ASSIGN_OR_RETURN(out.kubernetes_service.service_ip,
                           apiserver::FirstServiceIp(SplitList(options.service_cluster_ip_range).front()));
  out.kubernetes_service.advertise_address = AdvertiseAddress(options);
  out.kubernetes_service.port = options.secure_port;
  KEELSON_ASSIGN_OR_RETURN(out.kubernetes_service.node_port, KubernetesNodePort(options));
  out.kubernetes_service.publish = options.endpoint_reconciler != "none";
  out.external_host = options.external_hostname.empty() ? out.kubernetes_service.advertise_address
                                                        : options.external_hostname;
  KEELSON_ASSIGN_OR_RETURN(
      out.admission,
      apiserver::ReadAdmissionConfig(options.enable_admission_plugins, options.disable_admission_plugins,
                                     options.admission_control_config_file));
  out.admission.not_ready_toleration_seconds = options.default_not_ready_toleration_seconds;
  out.admission.unreachable_toleration_seconds = options.default_unreachable_toleration_seconds;
  out.gate_on = [gates = options.feature_gates](std::string_view gate) {
    return k8s::FeatureInEffect(gates, gate, k8s::Program::kApiServer);
  };
  KEELSON_ASSIGN_OR_RETURN(out.auditor, MakeAuditor(options.audit));
  KEELSON_ASSIGN_OR_RETURN(out.limits, LimitsOf(options));
  out.flags = options.flags;
  out.flagz = k8s::FeatureEnabled(options.feature_gates, "ComponentFlagz");
  out.statusz = k8s::FeatureEnabled(options.feature_gates, "ComponentStatusz");
  out.profiling = options.profiling;
  out.metric_resolution = std::chrono::duration_cast<std::chrono::seconds>(options.metric_resolution);
  if (!options.enable_aggregator_routing) {
    out.service_routing = apiserver::ServiceResolver::Routing::kClusterIp;
  }
  if (out.metric_resolution.count() <= 0) {
    return Error(Code::kInvalid, "--metric-resolution must be at least 1s");
  }
  return out;
}

// Objects that live as long as the process, created before the first service runs.
struct ControlPlane {
  std::unique_ptr<etcd::Supervisor> etcd;
  std::shared_ptr<etcd::Client> etcd_client;
  std::unique_ptr<storage::Store> store;
  std::unique_ptr<registry::Registry> registry;
  std::unique_ptr<apiserver::ApiServer> apiserver;
  std::unique_ptr<http::Server> https;
  http::FileReloader files;
  Roles roles;
};

// What makes our own etcd a member that others can reach.
Result<> SetAddress(const Options& options, etcd::SupervisorOptions& supervisor) {
  if (options.etcd_address.empty()) return {};
  if (options.etcd_pki_dir.empty() || options.etcd_ca_file.empty() || options.etcd_certificate_file.empty() ||
      options.etcd_key_file.empty()) {
    return Error(Code::kInvalid,
                 "--etcd-address needs --etcd-pki-dir, --etcd-cafile, --etcd-certfile and --etcd-keyfile");
  }
  supervisor.address = options.etcd_address;
  supervisor.name = options.etcd_name;
  supervisor.initial_cluster = options.etcd_initial_cluster;
  const std::string& pki = options.etcd_pki_dir;
  supervisor.pki = {
      pki + "/ca.crt",       pki + "/server.crt", pki + "/server.key", options.etcd_certificate_file,
      options.etcd_key_file, pki + "/peer.crt",   pki + "/peer.key"};
  return {};
}

// One watch over one etcd feeds the caches of all resources.
Result<> CheckEtcdOverrides(const Options& options) {
  if (options.etcd_overrides.empty()) return {};
  return Error(Code::kInvalid, "--etcd-servers-overrides=" + Join(options.etcd_overrides, ",") +
                                   ": all resources are in the etcd of --etcd-servers; this server would not "
                                   "see objects in another etcd");
}

Result<> MakeEtcd(const Options& options, ControlPlane& plane) {
  KEELSON_RETURN_IF_ERROR(CheckEtcdOverrides(options));
  etcd::ClientOptions client;
  if (!options.etcd_servers.empty() && !options.etcd_address.empty()) {
    return Error(Code::kInvalid, "--etcd-servers and --etcd-address are mutually exclusive");
  }
  if (options.etcd_servers.empty()) {
    etcd::SupervisorOptions supervisor;
    supervisor.binary = options.etcd_binary;
    supervisor.data_dir = options.data_dir + "/etcd";
    KEELSON_RETURN_IF_ERROR(SetAddress(options, supervisor));
    KEELSON_RETURN_IF_ERROR(MakeDirs(supervisor.data_dir, 0700));
    KEELSON_ASSIGN_OR_RETURN(plane.etcd, etcd::Supervisor::Make(std::move(supervisor)));
    client = plane.etcd->client_options();
  } else {
    client.endpoints = options.etcd_servers;
    KEELSON_ASSIGN_OR_RETURN(client.ca_pem, ReadIfSet(options.etcd_ca_file));
    KEELSON_ASSIGN_OR_RETURN(client.certificate_pem, ReadIfSet(options.etcd_certificate_file));
    KEELSON_ASSIGN_OR_RETURN(client.key_pem, ReadIfSet(options.etcd_key_file));
  }
  KEELSON_ASSIGN_OR_RETURN(client.prefix, EtcdPrefix(options.etcd_prefix));
  plane.etcd_client = std::make_shared<etcd::Client>(std::move(client));
  storage::TellDatabaseSize(plane.etcd_client);
  return {};
}

Result<storage::Store::Options> StoreOptions(const Options& options) {
  storage::Store::Options out;
  out.compact_period = std::chrono::duration_cast<std::chrono::seconds>(options.compaction_interval);
  out.json = options.storage_media_type == "application/json";
  if (options.encryption_config_file.empty()) return out;
  KEELSON_ASSIGN_OR_RETURN(const std::string prefix, EtcdPrefix(options.etcd_prefix));
  KEELSON_ASSIGN_OR_RETURN(out.encryption, storage::Encryption::Load(options.encryption_config_file, prefix));
  out.reload_encryption = options.reload_encryption_config;
  return out;
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
  KEELSON_ASSIGN_OR_RETURN(registry::Config config, RegistryConfig(options));
  KEELSON_ASSIGN_OR_RETURN(apiserver::ApiServerOptions api, ApiServerOptionsOf(options));
  KEELSON_ASSIGN_OR_RETURN(storage::Store::Options storage, StoreOptions(options));
  if (storage.encryption) api.check_kms = [encryption = storage.encryption] { return encryption->Health(); };
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
  server.worker_threads = kWorkers;
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
  group.Add({"storage", storage_needs, [&plane](std::stop_token stop, ServiceGroup::Ready ready) {
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
  }
  if (Result<> added = AddRoles(group, options, plane.apiserver.get(), plane.roles); !added) {
    return component::ExitCode(added, kCannotStart);
  }
  AddNotifier(group, plane);
  return group.RunUntilSignal();
}

}  // namespace keelson::controlplane
