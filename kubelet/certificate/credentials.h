// The kubelet's certificates, from its settings: the one it is known by at the API server, and the one that
// its own server shows.
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

// The API server of --kubeconfig; bootstraps first, if that is asked for and needed.
Result<std::shared_ptr<client::Transport>> ConnectWithCredentials(const Settings& settings);
// Renews the certificate of that client while it is used, with rotateCertificates.
void AddClientRotation(ServiceGroup& group, const Settings& settings, const client::RestClient& api);

// The kubelet's server. It shows, in this order: the cluster's certificate (serverTLSBootstrap: nothing
// listens before it has been issued), tlsCertFile, or one that it signs itself.
class KubeletListener {
 public:
  using Addresses = std::function<std::vector<corev1::NodeAddress>()>;  // of the node; none: not known yet

  KubeletListener(const Settings& settings, http::Handler handler);
  // "server", "server-files", and "serving-certificate" where there is one to be asked for.
  void AddServices(ServiceGroup& group, const client::RestClient& api, Addresses addresses);
  uint16_t AwaitPort();  // where it listens, once it does

 private:
  Result<> Run(std::stop_token stop, const ServiceGroup::Ready& ready);
  void CertificateChanged();
  Result<> Reload();  // what its files hold now
  void WatchFiles();

  const Settings& settings_;
  const http::Handler handler_;
  const bool rotated_;
  std::string certificate_file_, key_file_;
  http::FileReloader files_;
  Mutex mutex_;
  CondVar changed_;
  bool issued_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<http::Server> server_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
