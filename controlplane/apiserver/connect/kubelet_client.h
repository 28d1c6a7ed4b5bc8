// Connections to kubelets, pods and services behind the API server.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/storage/store.h"
#include "lib/base/mutex.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver {

class BackendClients {  // thread safe
 public:
  struct Options {
    // Client certificate for kubelets, and the CA of their serving certificates (PEM; empty: not verified).
    std::string kubelet_certificate_pem, kubelet_key_pem, kubelet_ca_pem;
    // The first of a node's addresses, by these types, is where its kubelet is. Addresses before names: a
    // node's host name is often known to the node alone.
    std::vector<std::string> kubelet_address_types = {"InternalIP", "ExternalIP", "Hostname"};
    std::chrono::milliseconds connect_timeout{10000};  // to kubelets
  };
  BackendClients(storage::Store& store, Options options) : store_(store), options_(std::move(options)) {}

  // The kubelet of a node. NotFound; kUnavailable when the node has no address.
  Result<std::shared_ptr<http::Client>> Kubelet(std::string_view node);
  // A pod or a service's endpoint; whatever certificate it shows is taken.
  Result<std::shared_ptr<http::Client>> Plain(const std::string& base_url);

 private:
  Result<std::shared_ptr<http::Client>> Get(const std::string& base_url, http::TlsClientOptions tls,
                                            std::optional<std::chrono::milliseconds> connect_timeout = {});

  storage::Store& store_;
  const Options options_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<http::Client>> clients_ GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
