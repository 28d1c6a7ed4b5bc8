// ServiceAccount tokens: JWTs as Kubernetes' bound tokens are (KEP-1205): who they speak for and which
// object's life they share.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controlplane/apiserver/authn/token_verifier.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"
#include "lib/crypto/signing_key.h"

namespace keelson::apiserver {

struct TokenClaims {
  struct Object {
    std::string name, uid;
  };
  std::string issuer, subject, id;
  std::vector<std::string> audiences;
  int64_t expires = 0, not_before = 0, issued_at = 0;  // seconds since the epoch; 0: absent
  int64_t warn_after = 0;  // when the token should have been renewed; it lives on for clients that do not
  bool legacy = false;     // kept in a Secret, without an end
  std::string ns;
  Object service_account;
  std::optional<Object> pod, node, secret;
};

// Header, claims and signature joined by dots.
Result<std::string> SignToken(const TokenClaims& claims, const http::SigningKey& key);
// Checks nothing but the form; `signed_part` and `signature` are what a key has to verify.
struct ParsedToken {
  TokenClaims claims;
  std::string algorithm, key_id, signature;
  std::string_view signed_part;  // points into the token
};
Result<ParsedToken> ParseToken(std::string_view token);

// What the check of a bound object needs to know; nullopt when there is no such object.
struct ObjectIdentity {
  std::string uid;
  std::optional<WallTime> deleted;  // deletionTimestamp
  std::string token = {};           // of Secrets that hold one
  bool token_invalid = false;       // the Secret is labelled so
  std::string last_used = {};       // the day that its label says
};
using IdentityLookup = std::function<std::optional<ObjectIdentity>(
    std::string_view resource, std::string_view ns, std::string_view name)>;

// On Secrets with tokens, as days: 2006-01-02.
inline constexpr std::string_view kTokenInvalidLabel = "kubernetes.io/legacy-token-invalid-since";
inline constexpr std::string_view kTokenLastUsedLabel = "kubernetes.io/legacy-token-last-used";
std::string DateOf(WallTime time);

inline constexpr std::string_view kLegacyIssuer = "kubernetes/serviceaccount";

class TokenAuthenticator : public TokenVerifier {  // thread safe
 public:
  struct Options {
    std::vector<std::string> issuers;  // the first one is who new tokens are from
    std::vector<http::SigningKey> keys;
    std::vector<std::string> api_audiences;  // of this server
    bool lookup = true;                      // whether tokens end with the objects that they are bound to
    // Told of the first use of a Secret's token on a day; may be empty.
    std::function<void(const std::string& ns, const std::string& secret, const std::string& date)> mark_used =
        {};
  };
  TokenAuthenticator(Options options, IdentityLookup lookup, Clock& clock = Clock::Real());

  // Any token of one of the issuers is one of ours.
  Result<std::optional<TokenAnswer>> Authenticate(std::string_view token,
                                                  const std::vector<std::string>& audiences) override;

 private:
  // Tokens whose signature has been found good; everything that changes with time is checked each time.
  using ClaimsPtr = std::shared_ptr<const TokenClaims>;
  Result<ClaimsPtr> Verified(std::string_view token) EXCLUDES(mutex_);
  Result<> CheckTimes(const TokenClaims& claims) const;
  Result<> CheckObjects(const TokenClaims& claims, std::string_view token) const;
  Result<> CheckLegacySecret(const TokenClaims& claims, const ObjectIdentity& secret,
                             std::string_view token) const;
  bool VerifySignature(const ParsedToken& token) const;

  const Options options_;
  const IdentityLookup lookup_;
  Clock& clock_;
  Mutex mutex_;
  std::unordered_map<std::string, ClaimsPtr> verified_ GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
