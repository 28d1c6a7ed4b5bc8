// Webhook token authentication: sends a TokenReview, and caches the response.
#pragma once

#include <chrono>
#include <memory>

#include "controlplane/apiserver/authn/token_verifier.h"
#include "controlplane/apiserver/webhook/client.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

struct WebhookTokenOptions {
  std::string version = "v1beta1";  // of authentication.k8s.io
  std::chrono::milliseconds cache_ttl{std::chrono::minutes(2)};
  std::vector<std::string> api_audiences;
};
std::shared_ptr<TokenVerifier> NewWebhookTokenVerifier(std::unique_ptr<WebhookClient> client,
                                                       WebhookTokenOptions options,
                                                       Clock& clock = Clock::Real());

}  // namespace keelson::apiserver
