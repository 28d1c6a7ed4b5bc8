// HTTP clients for kubelets, pods and services.
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
    // The kubelet's address is the node's first address by this order of types. IP addresses come before
    // names, because often only the node itself can resolve its host name.
    std::vector<std::string> kubelet_address_types = {"InternalIP", "ExternalIP", "Hostname"};
    std::chrono::milliseconds connect_timeout{10000};  // for kubelets
  };
  BackendClients(storage::Store& store, Options options) : store_(store), options_(std::move(options)) {}

  // The client for a node's kubelet. kNotFound: no such node. kUnavailable: the node has no address.
  Result<std::shared_ptr<http::Client>> Kubelet(std::string_view node);
  // The client for a pod or a service's endpoint. It does not verify certificates.
  Result<std::shared_ptr<http::Client>> Plain(const std::string& base_url);

 private:
  Result<std::shared_ptr<http::Client>> Get(const std::string& base_url, crypto::TlsClientOptions tls,
                                            std::optional<std::chrono::milliseconds> connect_timeout = {});

  storage::Store& store_;
  const Options options_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<http::Client>> clients_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
