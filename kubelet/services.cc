#include "kubelet/services.h"

#include <malloc.h>

#include "kubelet/certificate/credentials.h"
#include "kubelet/cm/cgroups/instrumented_cgroups.h"
#include "kubelet/cm/cgroups/qos_cgroup_limits.h"
#include "kubelet/cm/node_setup.h"
#include "kubelet/config/settings.h"
#include "kubelet/cri/grpc_runtime.h"
#include "kubelet/cri/instrumented_runtime.h"
#include "kubelet/kubelet.h"
#include "kubelet/metrics/build_info.h"
#include "kubelet/node/addresses.h"
#include "kubelet/node/host_check.h"
#include "kubelet/node/lock_file.h"
#include "kubelet/node/oom_victims.h"
#include "kubelet/server/server.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/client/transport.h"
#include "lib/component/program.h"
#include "lib/crypto/tls_settings.h"
#include "lib/http/server/server.h"
#include "lib/k8s/feature_gates.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/notify.h"

namespace keelson::kubelet {

namespace {

// The runtime may come up after us.
Result<cri::Version> AwaitRuntime(cri::RuntimeService& runtime) {
  constexpr int kTries = 600;
  Mutex mutex;
  CondVar cv;
  for (int i = 0;; ++i) {
    auto version = runtime.GetVersion();
    if (version || i == kTries) return version;
    if (i == 0) log::Warn("Waiting for the container runtime", {{"err", version.error()}});
    MutexLock lock(mutex);
    cv.wait_for(mutex, std::chrono::milliseconds(500));
  }
}

// The runtime's own setting counts, where it tells it: two drivers would fight over one tree (KEP-4033).
Result<std::unique_ptr<PodCgroups>> MakeCgroups(cri::RuntimeService& runtime, const Settings& settings,
                                                const linux::Cgroups& cgroups) {
  const KubeletConfig& config = settings.config;
  bool systemd = config.cgroup_driver == "systemd";
  KEELSON_ASSIGN_OR_RETURN(bool told, runtime.CgroupDriver(systemd));
  if (!told) log::Debug("The runtime does not tell its cgroup driver", {{"driver", config.cgroup_driver}});
  const CgroupOptions options = MakeCgroupOptions(settings, ReadMachine(settings.flags.root_dir));
  if (!systemd) return NewPodCgroups(cgroups, options);
  KEELSON_ASSIGN_OR_RETURN(auto units, linux::SystemdUnits::Connect());
  return NewPodCgroups(cgroups, options, NewSystemdDriver(cgroups, std::move(units)));
}

// A watchdog of this port kills a kubelet that fails: the answer says only that the process serves requests.
Result<std::unique_ptr<http::Server>> ListenHealth(const KubeletConfig& config) {
  http::ServerOptions options;
  options.address = config.healthz_address;
  options.port = static_cast<uint16_t>(config.healthz_port);
  options.worker_threads = 1;
  return http::Server::Listen(options, [](auto request, auto writer) {
    const bool known = request->path == "/healthz" || request->path == "/healthz/ping";
    writer->Reply(known ? 200 : 404, {{"Content-Type", "text/plain; charset=utf-8"}},
                  known ? "ok" : "404 page not found\n");
  });
}

// The first check that fails.
Result<> CheckAll(server::KubeletBackend& backend) {
  for (const component::NamedCheck& check : backend.HealthChecks()) KEELSON_RETURN_IF_ERROR(check.check());
  return {};
}

// Where there is no API server.
class NoApi : public client::Transport {
 public:
  Result<client::ApiResponse> Do(const client::ApiRequest&, std::chrono::milliseconds,
                                 std::stop_token) override {
    return Error(Code::kUnavailable, "standalone: there is no API server");
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest&, std::stop_token) override {
    return Error(Code::kUnavailable, "standalone: there is no API server");
  }
};

Result<std::shared_ptr<client::Transport>> ConnectApi(const Settings& settings) {
  if (!settings.flags.kubeconfig.empty()) return ConnectWithCredentials(settings);
  log::Warn("Standalone mode, no API client");
  return std::shared_ptr<client::Transport>(std::make_shared<NoApi>());
}

void AddServer(ServiceGroup& group, const char* name, http::Server& server) {
  group.Add({name, {}, [&server](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return server.Run(stop);
             }});
}

// null when none are configured.
Result<std::shared_ptr<CredentialProviders>> LoadCredentialProviders(const Settings& settings) {
  const KubeletFlags& flags = settings.flags;
  if (flags.image_credential_provider_config.empty()) return std::shared_ptr<CredentialProviders>();
  return CredentialProviders::Load(
      flags.image_credential_provider_config, flags.image_credential_provider_bin_dir,
      k8s::FeatureEnabled(settings.config.feature_gates, "KubeletServiceAccountTokenForCredentialProviders"));
}

// Names in the TLS settings that mean nothing, or nothing good.
Result<> CheckTls(const KubeletConfig& config) {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> warnings,
                           crypto::CheckTlsSettings(config.tls_min_version, config.tls_cipher_suites));
  for (const std::string& warning : warnings) log::Warn(warning);
  return {};
}

// Null: none is configured.
Result<std::optional<LockFile>> TakeLock(const KubeletFlags& flags) {
  if (flags.lock_file.empty()) {
    if (!flags.exit_on_lock_contention) return std::optional<LockFile>();
    return Error(Code::kInvalid, "cannot exit on lock file contention: no lock file specified");
  }
  log::Info("Acquiring file lock", {{"path", flags.lock_file}});
  KEELSON_ASSIGN_OR_RETURN(LockFile lock, LockFile::Take(flags.lock_file));
  return std::optional(std::move(lock));
}

Result<int> Run(const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<LockFile> lock, TakeLock(settings.flags));
  KEELSON_RETURN_IF_ERROR(CheckTls(settings.config));
  KEELSON_RETURN_IF_ERROR(CheckNodeLabels(settings.flags.node_labels));
  if (auto ips = ParseNodeIps(settings.flags.node_ip); !ips) return ips.error();
  if (auto reserved = ParseQosReserved(settings.config.qos_reserved); !reserved) return reserved.error();
  if (auto thresholds = ParseThresholds(MakeEvictionOptions(settings.config)); !thresholds) {
    return thresholds.error();
  }
  const bool standalone = settings.flags.kubeconfig.empty();
  KEELSON_ASSIGN_OR_RETURN(auto transport, ConnectApi(settings));
  client::RestClient api(transport);

  OomVictims oom_victims = OomVictims::OfKernelLog();
  cri::GrpcServices cri = cri::NewGrpcServices(
      {settings.config.container_runtime_endpoint, settings.config.image_service_endpoint,
       std::chrono::duration_cast<std::chrono::seconds>(settings.config.runtime_request_timeout),
       [&oom_victims](const std::string& id) { return oom_victims.Has(id); }});
  const auto runtime = InstrumentedRuntimeService(*cri.runtime);
  const auto images = InstrumentedImageService(*cri.images);
  KEELSON_ASSIGN_OR_RETURN(cri::Version version, AwaitRuntime(*runtime));
  log::Info("Container runtime found", {{"name", version.name}, {"version", version.version}});
  KEELSON_RETURN_IF_ERROR(MakeDirs(settings.flags.root_dir, 0750));
  KEELSON_ASSIGN_OR_RETURN(linux::Cgroups cgroups, linux::Cgroups::Detect());
  KEELSON_RETURN_IF_ERROR(PrepareHost(settings.config, cgroups));
  bool cgroup_v2 = cgroups.unified();
  KEELSON_ASSIGN_OR_RETURN(auto pod_cgroups, MakeCgroups(*runtime, settings, cgroups));
  const auto instrumented_cgroups = InstrumentedCgroups(*pod_cgroups);
  const Reservations reservations = MakeReservations(settings, ReadMachine(settings.flags.root_dir));
  KEELSON_ASSIGN_OR_RETURN(auto container_manager, ContainerManager::Make(settings, reservations, *runtime));
  auto mounter = NewMounter();
  KEELSON_RETURN_IF_ERROR(mounter->MakeShared(settings.flags.root_dir));
  KEELSON_ASSIGN_OR_RETURN(auto providers, LoadCredentialProviders(settings));
  Kubelet kubelet({api, *runtime, *images, *instrumented_cgroups, *mounter, cgroup_v2, version.name,
                   version.version, standalone, std::move(providers), [] { return linux::Logind::Connect(); },
                   container_manager.get(), [](const std::string& ip) { return CheckNodeIp(ip); }},
                  settings);

  SetBuildInfo(kubelet.node_name(), settings.config.feature_gates);
  ServiceGroup group;
  kubelet.AddNodeServices(group);
  // Not after the API server's answer: kubeadm waits for the start of the kubelet that is to run the API server.
  group.Add(linux::SystemdNotifier({"pods"}, [&kubelet] { return CheckAll(kubelet.backend()); }));
  kubelet.AddApiServices(group);
  server::KubeletServerOptions server_options;
  server_options.node_name = kubelet.node_name();
  server_options.debugging_handlers = settings.config.enable_debugging_handlers;
  server_options.system_log_handler = settings.config.enable_system_log_handler;
  server_options.system_log_query = settings.config.enable_system_log_query;
  server_options.profiling = settings.config.enable_profiling_handler;
  server_options.debug_flags = settings.config.enable_debug_flags_handler;
  server_options.statusz = k8s::FeatureEnabled(settings.config.feature_gates, "ComponentStatusz");
  server_options.flagz = k8s::FeatureEnabled(settings.config.feature_gates, "ComponentFlagz");
  server_options.flags = settings.flag_values;
  server_options.anonymous = settings.config.anonymous;
  server_options.webhook_authentication = settings.config.webhook_authentication;
  server_options.webhook_authorization = settings.config.authorization_mode != "AlwaysAllow";
  server_options.authentication_ttl = settings.config.webhook_cache_ttl;
  server_options.authorized_ttl = settings.config.cache_authorized_ttl;
  server_options.unauthorized_ttl = settings.config.cache_unauthorized_ttl;
  server::KubeletServer server(server_options, kubelet.backend(), api);
  std::optional<KubeletListener> listener;
  if (settings.config.enable_server) {
    listener.emplace(settings, server.handler());
    listener->AddServices(group, api, [&kubelet] { return kubelet.Addresses(); });
  }
  AddClientRotation(group, settings, api);
  std::unique_ptr<http::Server> read_only;
  if (settings.config.read_only_port != 0) {
    http::ServerOptions open;
    open.address = settings.config.address;
    open.port = static_cast<uint16_t>(settings.config.read_only_port);
    KEELSON_ASSIGN_OR_RETURN(read_only, http::Server::Listen(open, server.read_only_handler()));
    AddServer(group, "read-only", *read_only);
  }
  std::unique_ptr<http::Server> health;
  if (settings.config.healthz_port != 0) {
    KEELSON_ASSIGN_OR_RETURN(health, ListenHealth(settings.config));
    AddServer(group, "healthz", *health);
  }
  if (settings.flags.exit_on_lock_contention) {
    group.Add({"lock-contention", {}, [&lock](std::stop_token stop, ServiceGroup::Ready ready) {
                 ready();
                 auto asked = lock->AwaitOther(stop);
                 if (asked) log::Info("Another kubelet asks for the lock: this one ends");
                 return asked;
               }});
  }
  return group.RunUntilSignal();
}

}  // namespace

int RunKubelet(int argc, char** argv) {
  std::optional<int> exit_code;
  auto settings = LoadSettings(argc, argv, exit_code);
  if (exit_code) return *exit_code;
  if (!settings) return component::ExitCode(Result<>(settings.error()), "Cannot start");
  // glibc would make eight arenas a core, each with a burst's free memory left in it.
  ::mallopt(M_ARENA_MAX, 1);
  // Free neighbours become one at once, instead of now and then in long walks over all of them.
  ::mallopt(M_MXFAST, 0);
  return component::ExitCode(Run(*settings), "Cannot start");
}

}  // namespace keelson::kubelet
