// The API server: one request from the socket (or from inside the process) to its reply.
//
//   authentication -> impersonation -> authorization -> discovery, health, ... or, for resources:
//   connect (logs, exec, proxies) | reviews | tokens | registry with admission
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/apiserver/admission/config.h"
#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/authn/authenticator.h"
#include "controlplane/apiserver/authn/static_tokens.h"
#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/apiserver/connect/kubelet_client.h"
#include "controlplane/apiserver/request/api_enablement.h"
#include "controlplane/apiserver/request/user.h"
#include "controlplane/apiserver/request_limits.h"
#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"
#include "lib/base/service_group.h"
#include "lib/client/transport.h"
#include "lib/crypto/signing_key.h"
#include "lib/http/server/server.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::apiserver {

struct ApiServerOptions {
  // ---- who is it ----
  std::vector<std::string> issuers = {"https://kubernetes.default.svc"};  // the first one signs
  std::vector<std::string> api_audiences;                                 // empty: the issuers
  std::vector<http::SigningKey> verify_keys;                              // of ServiceAccount tokens
  std::optional<http::SigningKey> signing_key;                            // none: no TokenRequest
  std::chrono::seconds max_token_expiration{int64_t{1} << 32};
  bool extend_token_expiration = true, look_tokens_up = true, bootstrap_tokens = false;
  std::string jwks_uri;  // empty: this server's
  StaticTokens static_tokens;
  std::vector<std::shared_ptr<TokenVerifier>> token_verifiers;  // asked after all others
  AnonymousOptions anonymous;
  AuthenticationInfo authentication;  // also told to servers that extend the API

  // ---- may they ----
  // In order. Node and RBAC are made here, from this server's objects; others come ready.
  struct AuthorizerEntry {
    enum class Kind { kNode, kRbac, kOther } kind;
    std::shared_ptr<const Authorizer> other = nullptr;
    std::string type = "", name = "";  // of others, as configured
  };
  std::vector<AuthorizerEntry> authorizers = {{AuthorizerEntry::Kind::kNode}, {AuthorizerEntry::Kind::kRbac}};

  GateOn gate_on = [](std::string_view gate) { return k8s::FeatureEnabled({}, gate); };

  BackendClients::Options backends;
  KubernetesServiceOptions kubernetes_service;
  std::string external_host;  // in URLs that lead here; empty: the advertised address
  ApiEnablement enablement;
  AdmissionConfig admission;
  std::unique_ptr<audit::Auditor> auditor;  // null: nothing is recorded
  RequestLimits limits;
  std::function<Result<>()> check_kms;         // for /readyz; may be empty
  std::vector<std::string> flags;              // "name=value", for /flagz
  bool statusz = true, flagz = true;           // the pages of these names
  bool profiling = true;                       // /debug/pprof/
  std::chrono::seconds metric_resolution{15};  // between two looks at what a node and its pods use
};

class ApiServer {
 public:
  // `registry` and `store` outlive the server.
  ApiServer(ApiServerOptions options, registry::Registry& registry, storage::Store& store);
  ~ApiServer();

  // What serves the socket.
  void Handle(std::shared_ptr<const http::ServerRequest> request,
              std::shared_ptr<http::ResponseWriter> writer);
  // The same with the user known: for requests from inside the process.
  void HandleAs(const User& user, std::shared_ptr<const http::ServerRequest> request,
                std::shared_ptr<http::ResponseWriter> writer);

  // Starts the registry, follows roles and bindings, makes what every cluster has, calls ready(), and keeps
  // all of it so until `stop`. The store is ready before.
  Result<> Run(std::stop_token stop, ServiceGroup::Ready ready);

  // ---- who is let in, and may do what, from the next request on; thread safe ----
  // What was given in the options is replaced. No key to sign with: the one that there is stays.
  void SetKeys(std::vector<http::SigningKey> verify_keys, std::optional<http::SigningKey> signing_key);
  void SetStaticTokens(StaticTokens tokens);
  void SetTokenVerifiers(std::vector<std::shared_ptr<TokenVerifier>> verifiers);
  void SetAuthorizers(std::vector<ApiServerOptions::AuthorizerEntry> authorizers);

  // /readyz fails from now on; everything else goes on.
  void BeginShutdown();
  // Ends the watches that are open.
  void EndWatches();

  // In-process requests as `user`, from the program that `user_agent` names.
  std::shared_ptr<client::Transport> TransportFor(User user, std::string user_agent = "");

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::apiserver
