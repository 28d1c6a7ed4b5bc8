// Webhook authorization: sends a SubjectAccessReview, and caches the response.
#pragma once

#include <chrono>
#include <memory>

#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/authz/match_conditions.h"
#include "controlplane/apiserver/webhook/client.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

struct WebhookAuthorizerOptions {
  std::string name = "default";
  std::string version = "v1beta1";  // of authorization.k8s.io
  std::chrono::milliseconds authorized_ttl{std::chrono::minutes(5)};
  std::chrono::milliseconds unauthorized_ttl{std::chrono::seconds(30)};
  bool deny_on_failure = false;        // if false, the next authorizer decides
  AuthorizationConditions conditions;  // requests that do not match them are left to the next authorizer
};
std::shared_ptr<const Authorizer> NewWebhookAuthorizer(std::unique_ptr<WebhookClient> client,
                                                       WebhookAuthorizerOptions options,
                                                       Clock& clock = Clock::Real());

}  // namespace keelson::apiserver
