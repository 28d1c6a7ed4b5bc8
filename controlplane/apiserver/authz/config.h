// --authorization-config: AuthorizationConfiguration of apiserver.config.k8s.io. Match conditions (CEL) are
// not evaluated here: files that have any are refused.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/apiserver/authz/webhook.h"

namespace keelson::apiserver {

struct AuthorizerConfig {
  std::string type, name;  // type: Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny
  // Of webhooks.
  std::string kubeconfig_file;
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};
  WebhookAuthorizerOptions webhook;
};
Result<std::vector<AuthorizerConfig>> ParseAuthorizationConfig(const std::string& text);
// Of --authorization-mode; `webhook` is what the --authorization-webhook-* flags say.
Result<std::vector<AuthorizerConfig>> AuthorizersOfModes(const std::vector<std::string>& modes,
                                                         const AuthorizerConfig& webhook);

// For the modes of those names.
std::shared_ptr<const Authorizer> NewAlwaysAuthorizer(bool allow);

}  // namespace keelson::apiserver
