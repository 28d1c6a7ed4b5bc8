#include "kubelet/certificate/credentials.h"

#include <algorithm>
#include <optional>

#include "kubelet/certificate/bootstrap.h"
#include "kubelet/certificate/certificate_manager.h"
#include "kubelet/node/machine.h"
#include "lib/base/file.h"
#include "lib/base/ip.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::kubelet {
namespace {

std::string NodeName(const Settings& settings) {
  return settings.flags.hostname_override.empty() ? HostName() : settings.flags.hostname_override;
}

CertificateStore ClientStore(const Settings& settings) { return {settings.flags.cert_dir, "kubelet-client"}; }
CertificateStore ServingStore(const Settings& settings) {
  return {settings.flags.cert_dir, "kubelet-server"};
}

Result<std::shared_ptr<client::Transport>> TransportFor(client::RestConfig config) {
  config.user_agent = std::string("kubelet/") + kGitVersion + " (" + kPlatform + ") keelson";
  return client::NewHttpTransport(config);
}

// From now on the certificate is the one in the store: the kubeconfig's, until the first renewal.
Result<> UseStore(const CertificateStore& store, client::RestConfig& config) {
  if (config.certificate_pem.empty()) return {};
  auto stored = store.Load();
  if (!stored || stored->not_after < Clock::Real().Now()) {
    KEELSON_RETURN_IF_ERROR(store.Store(config.certificate_pem, config.key_pem, Clock::Real().Now()));
  }
  KEELSON_ASSIGN_OR_RETURN(config.certificate_pem, ReadFile(store.path()));
  config.key_pem = config.certificate_pem;
  config.certificate_file = config.key_file = store.path();
  return {};
}

// Nullopt: the node has no addresses yet.
std::optional<CertificateTemplate> WishFor(const std::string& node_name,
                                           const std::vector<corev1::NodeAddress>& addresses) {
  std::vector<std::string> names, ips;
  for (const corev1::NodeAddress& address : addresses) {
    auto& list = IpAddress::Parse(address.address()) ? ips : names;
    if (std::find(list.begin(), list.end(), address.address()) == list.end()) {
      list.push_back(address.address());
    }
  }
  if (names.empty() && ips.empty()) return std::nullopt;
  std::sort(names.begin(), names.end());
  std::sort(ips.begin(), ips.end());
  return ServingCertificateTemplate(node_name, std::move(names), std::move(ips));
}

// The group's service around a manager that lives as long.
void AddManager(ServiceGroup& group, const char* name, std::shared_ptr<CertificateManager> manager) {
  group.Add({name, {}, [manager = std::move(manager)](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return manager->Run(stop);
             }});
}

}  // namespace

Result<std::shared_ptr<client::Transport>> ConnectWithCredentials(const Settings& settings) {
  const KubeletFlags& flags = settings.flags;
  if (!flags.bootstrap_kubeconfig.empty()) {
    KEELSON_RETURN_IF_ERROR(
        Bootstrap({flags.kubeconfig, flags.bootstrap_kubeconfig, flags.cert_dir, NodeName(settings)},
                  [](const client::RestConfig& config) { return TransportFor(config); }, {}));
  }
  KEELSON_ASSIGN_OR_RETURN(client::RestConfig config, client::LoadKubeconfig(flags.kubeconfig));
  if (settings.config.rotate_certificates) KEELSON_RETURN_IF_ERROR(UseStore(ClientStore(settings), config));
  return TransportFor(std::move(config));
}

void AddClientRotation(ServiceGroup& group, const Settings& settings, const client::RestClient& api) {
  const CertificateStore store = ClientStore(settings);
  // A client with a token instead of a certificate has nothing to renew.
  if (settings.flags.kubeconfig.empty() || !settings.config.rotate_certificates ||
      !PathExists(store.path())) {
    return;
  }
  const std::string name = NodeName(settings);
  // The client looks at its files itself.
  AddManager(group, "client-certificate",
             std::make_shared<CertificateManager>(
                 api, store, CertificateManager::Purpose::kClient,
                 [name] { return ClientCertificateTemplate(name); }, [] {}));
}

KubeletListener::KubeletListener(const Settings& settings, http::Handler handler)
    : settings_(settings), handler_(std::move(handler)), rotated_(settings.config.server_tls_bootstrap) {
  const KubeletConfig& config = settings.config;
  const std::string own = settings.flags.cert_dir + "/kubelet";
  certificate_file_ = rotated_                       ? ServingStore(settings).path()
                      : config.tls_cert_file.empty() ? own + ".crt"
                                                     : config.tls_cert_file;
  key_file_ = rotated_                              ? certificate_file_
              : config.tls_private_key_file.empty() ? own + ".key"
                                                    : config.tls_private_key_file;
  issued_ = !rotated_ || ServingStore(settings).Load();
}

void KubeletListener::AddServices(ServiceGroup& group, const client::RestClient& api, Addresses addresses) {
  group.Add(
      {"server", {}, [this](std::stop_token stop, ServiceGroup::Ready ready) { return Run(stop, ready); }});
  group.Add({"server-files", {"server"}, [this](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
               ready();
               files_.Run(stop);
               return {};
             }});
  if (!rotated_) return;
  const std::string name = NodeName(settings_);
  AddManager(group, "serving-certificate",
             std::make_shared<CertificateManager>(
                 api, ServingStore(settings_), CertificateManager::Purpose::kServing,
                 [name, addresses = std::move(addresses)] { return WishFor(name, addresses()); },
                 [this] { CertificateChanged(); }));
}

Result<> KubeletListener::Run(std::stop_token stop, const ServiceGroup::Ready& ready) {
  const KubeletConfig& config = settings_.config;
  if (!rotated_ && config.tls_cert_file.empty()) {
    KEELSON_RETURN_IF_ERROR(
        EnsureSelfSigned(settings_.flags.cert_dir, NodeName(settings_), Clock::Real().Now()));
  }
  WatchFiles();  // which are there by now, and are read below
  ready();
  {
    MutexLock lock(mutex_);
    while (!issued_ && !stop.stop_requested()) {
      changed_.wait(mutex_, stop, [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return issued_; });
    }
  }
  if (stop.stop_requested()) return {};
  http::ServerOptions options;
  options.address = config.address;
  options.port = static_cast<uint16_t>(config.port);
  options.tls.emplace();
  options.tls->certificate_file = certificate_file_;
  options.tls->key_file = key_file_;
  options.tls->client_ca_file = config.client_ca_file;
  options.tls->min_version = config.tls_min_version;
  options.tls->cipher_suites = config.tls_cipher_suites;
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<http::Server> server,
                           http::Server::Listen(std::move(options), handler_));
  {
    MutexLock lock(mutex_);
    server_ = server;
    changed_.notify_all();
  }
  if (rotated_) KEELSON_RETURN_IF_ERROR(server->ReloadTls());  // what has come since it was read
  return server->Run(stop);
}

uint16_t KubeletListener::AwaitPort() {
  MutexLock lock(mutex_);
  while (!server_) changed_.wait(mutex_);
  return server_->port();
}

Result<> KubeletListener::Reload() {
  std::shared_ptr<http::Server> server;
  {
    MutexLock lock(mutex_);
    server = server_;
  }
  return server ? server->ReloadTls() : Result<>();
}

void KubeletListener::WatchFiles() {
  const KubeletConfig& config = settings_.config;
  files_.Add({"client-ca-file", {config.client_ca_file}, [this] { return Reload(); }});
  // The cluster's certificate has metrics of its own.
  if (!rotated_ && k8s::FeatureEnabled(config.feature_gates, "ReloadKubeletServerCertificateFile")) {
    files_.Add({"tls-cert-file", {certificate_file_, key_file_}, [this] { return Reload(); }});
  }
}

void KubeletListener::CertificateChanged() {
  {
    MutexLock lock(mutex_);
    issued_ = true;
    changed_.notify_all();
  }
  if (auto reloaded = Reload(); !reloaded) {
    log::Error("Cannot use the new serving certificate", {{"err", reloaded.error()}});
  }
}

}  // namespace keelson::kubelet
