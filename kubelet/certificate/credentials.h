// The kubelet's credentials, from its settings: its client certificate for the API server, and the serving certificate
// of its HTTPS listener.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kubelet/config/settings.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"
#include "lib/base/service_group.h"
#include "lib/client/rest.h"
#include "lib/client/transport.h"
#include "lib/http/server/file_reloader.h"
#include "lib/http/server/server.h"

namespace keelson::kubelet {

// Connects to the API server of --kubeconfig. Runs TLS bootstrapping first if it is configured and needed, and blocks
// meanwhile.
Result<std::shared_ptr<client::Transport>> ConnectWithCredentials(const Settings& settings);
// With rotateCertificates adds a service that rotates that client certificate.
void AddClientRotation(ServiceGroup& group, const Settings& settings, const client::RestClient& api);

// Listens on the kubelet's HTTPS port. Its serving certificate is, in this order: one from the cluster
// (serverTLSBootstrap: it does not listen before the certificate is issued), tlsCertFile, or a self-signed one.
class KubeletListener {
 public:
  using Addresses = std::function<std::vector<corev1::NodeAddress>()>;  // of the node; empty: not known yet

  // `settings` has to outlive it.
  KubeletListener(const Settings& settings, http::Handler handler);
  // Adds "server", "server-files", and with serverTLSBootstrap "serving-certificate".
  void AddServices(ServiceGroup& group, const client::RestClient& api, Addresses addresses);
  uint16_t AwaitPort();  // blocks until it listens, and returns the port

 private:
  Result<> Run(std::stop_token stop, const ServiceGroup::Ready& ready);
  void CertificateChanged();
  Result<> Reload();  // the certificate files
  void WatchFiles();

  const Settings& settings_;
  const http::Handler handler_;
  const bool rotated_;
  std::string certificate_file_, key_file_;
  http::FileReloader files_;
  Mutex mutex_;
  CondVar changed_;
  bool issued_ KEELSON_GUARDED_BY(mutex_) = false;
  std::shared_ptr<http::Server> server_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
