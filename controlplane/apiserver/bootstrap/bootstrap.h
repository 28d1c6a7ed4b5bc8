// Creates the objects that every cluster has. Each function is idempotent, and keeps what users may change.
#pragma once

#include <stop_token>
#include <string>

#include "controlplane/apiserver/authn/request_header.h"
#include "controlplane/apiserver/authn/token.h"
#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

// default, kube-system, kube-public, kube-node-lease
Result<> EnsureSystemNamespaces(registry::Registry& registry, std::stop_token stop);
// Creates missing roles and bindings, and adds missing rules and subjects to existing ones, unless the
// annotation rbac.authorization.kubernetes.io/autoupdate is false.
Result<> EnsureBootstrapRoles(registry::Registry& registry, const GateOn& on, std::stop_token stop);
inline constexpr char kAutoupdate[] = "rbac.authorization.kubernetes.io/autoupdate";
// Removes the rules and subjects that earlier versions added to upstream's roles and bindings, where they
// match exactly. EnsureBootstrapRoles() calls it once per cluster: before it creates the first of this
// project's own roles.
Result<> RemoveRetiredGrants(registry::Registry& registry, const GateOn& on, std::stop_token stop);
// system-cluster-critical, system-node-critical
Result<> EnsurePriorityClasses(registry::Registry& registry, std::stop_token stop);

struct AuthenticationInfo {
  std::string client_ca_file;
  RequestHeaderOptions request_header;
};
// The ConfigMap extension-apiserver-authentication, with the current CAs.
Result<> EnsureAuthenticationInfo(registry::Registry& registry, const AuthenticationInfo& info,
                                  std::stop_token stop);

// The ConfigMap kube-apiserver-legacy-service-account-token-tracking, with the date since when
// MarkTokenUsed() is called.
Result<> EnsureLegacyTokenTracking(registry::Registry& registry, WallTime now, std::stop_token stop);
// Labels a Secret with the date (2006-01-02) when its token was last used.
Result<> MarkTokenUsed(registry::Registry& registry, std::string_view ns, std::string_view secret,
                       const std::string& date);

struct KubernetesServiceOptions {
  std::string service_ip;         // first address of the service range
  std::string advertise_address;  // address of this server for clients
  int port = 6443;
  bool publish = true;  // write the endpoints; else another component does
  int node_port = 0;    // 0: the Service is of type ClusterIP, else of NodePort
};
// The Service default/kubernetes, with Endpoints and an EndpointSlice that name all API servers with a lease. Renews this
// server's lease of 15 seconds; call it every 10. kUnavailable and the like when etcd does not answer.
Result<> EnsureKubernetesService(registry::Registry& registry, const KubernetesServiceOptions& options,
                                 std::stop_token stop);
// Gives the Service the type and ports of `options`, for a server that starts: whoever started last decides, as upstream.
Result<> CorrectKubernetesService(registry::Registry& registry, const KubernetesServiceOptions& options,
                                  std::stop_token stop);
// Ends this server's lease, and takes its address out of the endpoints unless it is the last one. Before the server stops
// to serve.
Result<> WithdrawKubernetesEndpoint(registry::Registry& registry, const KubernetesServiceOptions& options);

// "10.96.0.1" for "10.96.0.0/12"; also IPv6.
Result<std::string> FirstServiceIp(const std::string& cidr);

// Creates the object if it does not exist.
Result<> CreateIfAbsent(registry::Registry& registry, const api::Message& object, std::stop_token stop);
registry::WriteOptions BootstrapWrite(std::stop_token stop);

}  // namespace keelson::apiserver
