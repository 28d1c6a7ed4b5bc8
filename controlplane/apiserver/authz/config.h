// --authorization-config: AuthorizationConfiguration of apiserver.config.k8s.io. Match conditions (CEL) are
// not evaluated here: files that have any are refused.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/apiserver/authz/webhook.h"

namespace keelson::apiserver {

struct AuthorizerConfig {
  std::string type, name;   // type: Node, RBAC, ABAC, Webhook, AlwaysAllow, AlwaysDeny
  std::string policy_file;  // of ABAC
  // Of webhooks.
  std::string kubeconfig_file;
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};
  WebhookAuthorizerOptions webhook;
};
Result<std::vector<AuthorizerConfig>> ParseAuthorizationConfig(const std::string& text);
// Of --authorization-mode; `webhook` is what the --authorization-webhook-* flags say, `policy_file` what
// --authorization-policy-file does.
Result<std::vector<AuthorizerConfig>> AuthorizersOfModes(const std::vector<std::string>& modes,
                                                         const AuthorizerConfig& webhook,
                                                         const std::string& policy_file = "");

// For the modes of those names.
std::shared_ptr<const Authorizer> NewAlwaysAuthorizer(bool allow);

}  // namespace keelson::apiserver
