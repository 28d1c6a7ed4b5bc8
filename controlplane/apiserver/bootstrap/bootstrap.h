// What every cluster has from its first minute. Each function is idempotent and leaves alone what users may
// change.
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
// Roles and bindings that are missing, and rules and subjects that are missing from those there are, unless
// the annotation rbac.authorization.kubernetes.io/autoupdate says false.
Result<> EnsureBootstrapRoles(registry::Registry& registry, const GateOn& on, std::stop_token stop);
inline constexpr char kAutoupdate[] = "rbac.authorization.kubernetes.io/autoupdate";
// Takes what earlier versions had added to upstream's roles and bindings out of them, rule by rule and
// subject by subject, where it is exactly that. Part of EnsureBootstrapRoles(), once in a cluster: before the
// first of this project's own roles is made.
Result<> RemoveRetiredGrants(registry::Registry& registry, const GateOn& on, std::stop_token stop);
// system-cluster-critical, system-node-critical
Result<> EnsurePriorityClasses(registry::Registry& registry, std::stop_token stop);

struct AuthenticationInfo {
  std::string client_ca_file;
  RequestHeaderOptions request_header;
};
// The ConfigMap extension-apiserver-authentication, with the CAs of this moment.
Result<> EnsureAuthenticationInfo(registry::Registry& registry, const AuthenticationInfo& info,
                                  std::stop_token stop);

// The ConfigMap kube-apiserver-legacy-service-account-token-tracking, with the day since when MarkTokenUsed()
// is called.
Result<> EnsureLegacyTokenTracking(registry::Registry& registry, WallTime now, std::stop_token stop);
// Labels a Secret with the day (2006-01-02) on which its token was last used.
Result<> MarkTokenUsed(registry::Registry& registry, std::string_view ns, std::string_view secret,
                       const std::string& date);

struct KubernetesServiceOptions {
  std::string service_ip;         // the first address of the service range
  std::string advertise_address;  // where this server is reached
  int port = 6443;
  bool publish = true;  // the endpoints; else somebody else writes them
};
// The Service default/kubernetes, with its Endpoints and EndpointSlice, which name this server alone: one
// API server a cluster writes them.
Result<> EnsureKubernetesService(registry::Registry& registry, const KubernetesServiceOptions& options,
                                 std::stop_token stop);

// "10.96.0.1" of "10.96.0.0/12"; IPv6 too.
Result<std::string> FirstServiceIp(const std::string& cidr);

// Creates the object unless it is there.
Result<> CreateIfAbsent(registry::Registry& registry, const api::Message& object, std::stop_token stop);
registry::WriteOptions BootstrapWrite(std::stop_token stop);

}  // namespace keelson::apiserver
