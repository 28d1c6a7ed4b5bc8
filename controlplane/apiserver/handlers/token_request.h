// serviceaccounts/token: issues tokens for ServiceAccounts, optionally bound to a pod, node or secret.
#pragma once

#include <atomic>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/authn/token.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/handlers/node_token_restriction.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class TokenIssuer {  // thread safe
 public:
  struct Options {
    std::string issuer;
    crypto::SigningKey key;
    std::vector<std::string> default_audiences;
    std::chrono::seconds max_expiration{int64_t{1} << 32};
    bool extend_expiration = true;  // of tokens for this server, for clients that do not refresh them
  };
  TokenIssuer(registry::Registry& registry, std::shared_ptr<const Authorizer> authorizer,
              const AdmissionChain& admission, Options options, Clock& clock = Clock::Real())
      : registry_(registry),
        node_rules_(registry, std::move(authorizer)),
        admission_(admission),
        options_(std::move(options)),
        key_(std::make_shared<const crypto::SigningKey>(options_.key)),
        clock_(clock) {}

  // Replaces the signing key. Thread safe.
  void SetKey(crypto::SigningKey key) {
    key_.store(std::make_shared<const crypto::SigningKey>(std::move(key)));
  }

  void Handle(Context& context) const;
  // Fills in `request.status`. kNotFound; kConflict when the bound object has another UID; kInvalid.
  Result<> Issue(std::string_view ns, std::string_view account,
                 authenticationv1::TokenRequest& request) const;

 private:
  Result<> Bind(const authenticationv1::BoundObjectReference& reference, TokenClaims& claims) const;

  registry::Registry& registry_;
  const NodeTokenRestriction node_rules_;
  const AdmissionChain& admission_;
  const Options options_;
  std::atomic<std::shared_ptr<const crypto::SigningKey>> key_;
  Clock& clock_;
};

}  // namespace keelson::apiserver
