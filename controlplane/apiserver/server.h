// The API server: from a request (network or in-process) to its response.
//
//   authentication -> impersonation -> authorization -> extension API servers, discovery, health, ... or, for
//   resources: connect (logs, exec, proxies) | reviews | tokens | registry with admission | peers of another version
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/apiserver/admission/config.h"
#include "controlplane/apiserver/aggregator/extension_clients.h"
#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/authn/authenticator.h"
#include "controlplane/apiserver/authn/static_tokens.h"
#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/apiserver/connect/kubelet_client.h"
#include "controlplane/apiserver/peers/peer_options.h"
#include "controlplane/apiserver/request/api_enablement.h"
#include "controlplane/apiserver/request/user.h"
#include "controlplane/apiserver/request_limits.h"
#include "controlplane/apiserver/webhook/service_resolver.h"
#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"
#include "lib/base/service_group.h"
#include "lib/client/transport.h"
#include "lib/crypto/signing_key.h"
#include "lib/http/server/server.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::apiserver {

struct ApiServerOptions {
  // ---- authentication ----
  std::vector<std::string> issuers = {"https://kubernetes.default.svc"};  // the first one signs
  std::vector<std::string> api_audiences;                                 // empty: the issuers
  std::vector<crypto::SigningKey> verify_keys;                            // for ServiceAccount tokens
  std::optional<crypto::SigningKey> signing_key;                          // none: no TokenRequest
  std::chrono::seconds max_token_expiration{int64_t{1} << 32};
  bool extend_token_expiration = true, look_tokens_up = true, bootstrap_tokens = false;
  std::string jwks_uri;  // empty: this server's
  StaticTokens static_tokens;
  std::vector<std::shared_ptr<TokenVerifier>> token_verifiers;  // tried last
  AnonymousOptions anonymous;
  AuthenticationInfo authentication;  // also published for extension API servers

  // ---- authorization ----
  // In order. The server creates Node and RBAC from its own objects; others are passed in.
  struct AuthorizerEntry {
    enum class Kind { kNode, kRbac, kOther } kind;
    std::shared_ptr<const Authorizer> other = nullptr;
    std::string type, name;  // of `other`, as configured
  };
  std::vector<AuthorizerEntry> authorizers = {{AuthorizerEntry::Kind::kNode}, {AuthorizerEntry::Kind::kRbac}};

  GateOn gate_on = [](std::string_view gate) { return k8s::FeatureEnabled({}, gate); };

  BackendClients::Options backends;
  KubernetesServiceOptions kubernetes_service;
  std::string external_host;  // in URLs to this server; empty: the advertised address
  ApiEnablement enablement;
  AdmissionConfig admission;
  std::unique_ptr<audit::Auditor> auditor;  // null: no audit
  RequestLimits limits;
  ServiceResolver::Routing service_routing = ServiceResolver::Routing::kEndpoints;
  ProxyCertificate proxy_certificate;  // for extension API servers
  bool reject_extension_redirects = true;
  PeerOptions peers;
  std::function<Result<>()> check_kms;  // for /readyz; may be empty
  // The alarms of etcd, a sentence each, for ComponentStatus; may be empty.
  std::function<Result<std::vector<std::string>>()> etcd_alarms;
  std::vector<std::string> flags;              // "name=value", for /flagz
  bool statusz = true, flagz = true;           // serve these pages
  bool profiling = true;                       // /debug/pprof/
  std::chrono::seconds metric_resolution{15};  // scrape interval of the kubelets' resource metrics
};

class ApiServer {
 public:
  // `registry` and `store` must outlive the server.
  ApiServer(ApiServerOptions options, registry::Registry& registry, storage::Store& store);
  ~ApiServer();

  // Handles a request from the network.
  void Handle(std::shared_ptr<const http::ServerRequest> request,
              std::shared_ptr<http::ResponseWriter> writer);
  // Whether Handle() takes the request's body as a stream: it passes the request on. Does not block.
  bool StreamsBody(const http::ServerRequest& request) const;
  // Handles an in-process request of a known user.
  void HandleAs(const User& user, std::shared_ptr<const http::ServerRequest> request,
                std::shared_ptr<http::ResponseWriter> writer);

  // Starts the registry, fills the RBAC and node indexes, creates the bootstrap objects, calls ready(), and
  // maintains all of it until `stop`. The store must be ready before.
  Result<> Run(std::stop_token stop, ServiceGroup::Ready ready);

  // ---- reload of authentication and authorization; applies to later requests; thread safe ----
  // These replace the settings in the options. Without `signing_key` the current one stays.
  void SetKeys(std::vector<crypto::SigningKey> verify_keys, std::optional<crypto::SigningKey> signing_key);
  void SetStaticTokens(StaticTokens tokens);
  void SetTokenVerifiers(std::vector<std::shared_ptr<TokenVerifier>> verifiers);
  void SetAuthorizers(std::vector<ApiServerOptions::AuthorizerEntry> authorizers);
  void SetProxyCertificate(ProxyCertificate certificate);

  // Makes /readyz fail, and takes this server out of the endpoints of the Service kubernetes; requests are still served.
  // Blocks until etcd has answered, or some seconds.
  void BeginShutdown();
  // Ends all open watches.
  void EndWatches();

  // A transport for in-process requests as `user`, with `user_agent`.
  std::shared_ptr<client::Transport> TransportFor(User user, std::string user_agent = "");

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::apiserver
