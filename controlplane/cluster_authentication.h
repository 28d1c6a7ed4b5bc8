// How the cluster's API server authenticates requests, for the pages of a role in a process of its own: the ConfigMap
// kube-system/extension-apiserver-authentication, which the server writes for all that stand beside it. Upstream:
// DelegatingAuthenticationOptions of k8s.io/apiserver.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "controlplane/apiserver/authn/request_header.h"
#include "controlplane/memory_file.h"
#include "lib/client/rest.h"

namespace keelson::controlplane {

// What the ConfigMap says. Bundles are PEM; empty: it says nothing.
struct ClusterAuthentication {
  std::string client_ca, proxy_ca;
  apiserver::RequestHeaderOptions request_header;  // without a file
};
// kInvalid: a bundle without a certificate or with something else in it, or headers or names that are no list.
Result<ClusterAuthentication> ReadClusterAuthentication(const corev1::ConfigMap& map);

// The CAs as files for a TLS server. Until the ConfigMap is known they trust no certificate that exists. What it once
// said stays in force while it is missing or cannot be understood.
class AuthenticationLookup {
 public:
  static Result<std::unique_ptr<AuthenticationLookup>> Make(client::RestClient api);

  const std::string& client_ca_file() const { return client_ca_.path(); }
  const std::string& proxy_ca_file() const { return proxy_ca_.path(); }
  apiserver::RequestHeaderOptions request_header() const { return *request_header_.load(); }  // thread safe

  // Reads the ConfigMap once. No error when it does not exist: it may come later.
  Result<> ReadOnce();
  // Follows it until `stop`, and calls `reload` after each change, for the server to read the files again.
  void Follow(std::stop_token stop, const std::function<Result<>()>& reload);

 private:
  AuthenticationLookup(client::RestClient api, MemoryFile client_ca, MemoryFile proxy_ca);
  Result<> Apply(const corev1::ConfigMap& map);

  const client::RestClient api_;
  MemoryFile client_ca_, proxy_ca_;
  std::atomic<std::shared_ptr<const apiserver::RequestHeaderOptions>> request_header_;
};

}  // namespace keelson::controlplane
