// --authorization-config: AuthorizationConfiguration of apiserver.config.k8s.io.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/apiserver/authz/webhook.h"

namespace keelson::apiserver {

struct AuthorizerConfig {
  std::string type, name;   // type: Node, RBAC, ABAC, Webhook, AlwaysAllow, AlwaysDeny
  std::string policy_file;  // for ABAC
  // For webhooks.
  std::string kubeconfig_file;
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};
  WebhookAuthorizerOptions webhook;
};
Result<std::vector<AuthorizerConfig>> ParseAuthorizationConfig(const std::string& text);
// Parses --authorization-mode. `webhook`: the --authorization-webhook-* flags. `policy_file`:
// --authorization-policy-file.
Result<std::vector<AuthorizerConfig>> AuthorizersOfModes(const std::vector<std::string>& modes,
                                                         const AuthorizerConfig& webhook,
                                                         const std::string& policy_file = "");

// The authorizer for AlwaysAllow or AlwaysDeny.
std::shared_ptr<const Authorizer> NewAlwaysAuthorizer(bool allow);

}  // namespace keelson::apiserver
