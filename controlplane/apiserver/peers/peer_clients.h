// HTTP clients for the other API servers of the cluster.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "controlplane/apiserver/aggregator/extension_clients.h"
#include "lib/base/mutex.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver {

class PeerClients {  // thread safe
 public:
  // A peer's serving certificate has to be of a CA in `ca_pem` and valid for kubernetes.default.svc. `certificate` shows
  // the peer who is asking.
  PeerClients(std::string ca_pem, ProxyCertificate certificate)
      : ca_pem_(std::move(ca_pem)), certificate_(std::move(certificate)) {}

  // `address`: host:port. kInvalid: the CAs or the certificate are no good.
  Result<std::shared_ptr<http::Client>> At(const std::string& address);
  // Later requests to the address get a new connection; those under way go on.
  void Forget(const std::string& address);
  // Applies to later connections.
  void SetCertificate(ProxyCertificate certificate);

 private:
  const std::string ca_pem_;
  Mutex mutex_;
  ProxyCertificate certificate_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<http::Client>> clients_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
