// serviceaccounts/token: tokens for ServiceAccounts, bound to a pod, a node or a secret or to nothing else.
#pragma once

#include <atomic>

#include "controlplane/apiserver/authn/token.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/handlers/node_token.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class TokenIssuer {  // thread safe
 public:
  struct Options {
    std::string issuer;
    http::SigningKey key;
    std::vector<std::string> default_audiences;
    std::chrono::seconds max_expiration{int64_t{1} << 32};
    bool extend_expiration = true;  // of tokens for this server that clients may keep without renewing them
  };
  TokenIssuer(registry::Registry& registry, std::shared_ptr<const Authorizer> authorizer, Options options,
              Clock& clock = Clock::Real())
      : registry_(registry),
        node_rules_(registry, std::move(authorizer)),
        options_(std::move(options)),
        key_(std::make_shared<const http::SigningKey>(options_.key)),
        clock_(clock) {}

  // Signs from now on.
  void SetKey(http::SigningKey key) { key_.store(std::make_shared<const http::SigningKey>(std::move(key))); }

  void Handle(Context& context) const;
  // Fills `request` in. NotFound, Conflict (the bound object's uid is another), Invalid.
  Result<> Issue(std::string_view ns, std::string_view account,
                 authenticationv1::TokenRequest& request) const;

 private:
  Result<> Bind(const authenticationv1::BoundObjectReference& reference, TokenClaims& claims) const;

  registry::Registry& registry_;
  const NodeTokenRules node_rules_;
  const Options options_;
  std::atomic<std::shared_ptr<const http::SigningKey>> key_;
  Clock& clock_;
};

}  // namespace keelson::apiserver
