// ServiceAccount tokens (KEP-1205): JWTs for a service account, bound to the lifetime of an object.
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
  int64_t warn_after = 0;  // when the client should have rotated the token (extended expiration)
  bool legacy = false;     // stored in a Secret, without expiration
  std::string ns;
  Object service_account;
  std::optional<Object> pod, node, secret;
};

// Returns header, claims and signature, joined by dots.
Result<std::string> SignToken(const TokenClaims& claims, const crypto::SigningKey& key);
// Parses a token without verifying it. Verify `signature` over `signed_part`.
struct ParsedToken {
  TokenClaims claims;
  std::string algorithm, key_id, signature;
  std::string_view signed_part;  // points into the token
};
Result<ParsedToken> ParseToken(std::string_view token);

// The facts needed to validate a bound object; nullopt when it does not exist.
struct ObjectIdentity {
  std::string uid;
  std::optional<WallTime> deleted;  // deletionTimestamp
  std::string token = {};           // for Secrets: the stored token
  bool token_invalid = false;       // the Secret has kTokenInvalidLabel
  std::string last_used = {};       // value of kTokenLastUsedLabel
};
using IdentityLookup = std::function<std::optional<ObjectIdentity>(
    std::string_view resource, std::string_view ns, std::string_view name)>;

// Labels of Secrets with tokens; the values are dates (2006-01-02).
inline constexpr std::string_view kTokenInvalidLabel = "kubernetes.io/legacy-token-invalid-since";
inline constexpr std::string_view kTokenLastUsedLabel = "kubernetes.io/legacy-token-last-used";
std::string DateOf(WallTime time);

inline constexpr std::string_view kLegacyIssuer = "kubernetes/serviceaccount";

class TokenAuthenticator : public TokenVerifier {  // thread safe
 public:
  struct Options {
    std::vector<std::string> issuers;  // the first one issues new tokens
    std::vector<crypto::SigningKey> keys;
    std::vector<std::string> api_audiences;  // of this server
    bool lookup = true;                      // reject tokens whose bound objects are gone
    // Called on the first use of a Secret's token on a day; may be empty.
    std::function<void(const std::string& ns, const std::string& secret, const std::string& date)> mark_used =
        {};
  };
  TokenAuthenticator(Options options, IdentityLookup lookup, Clock& clock = Clock::Real());

  // Recognizes any token of one of the issuers.
  Result<std::optional<TokenAnswer>> Authenticate(std::string_view token,
                                                  const std::vector<std::string>& audiences) override;

 private:
  // Returns the claims after a signature check, cached. The caller checks what depends on the time.
  using ClaimsPtr = std::shared_ptr<const TokenClaims>;
  Result<ClaimsPtr> Verified(std::string_view token) KEELSON_EXCLUDES(mutex_);
  Result<> CheckTimes(const TokenClaims& claims) const;
  Result<> CheckObjects(const TokenClaims& claims, std::string_view token) const;
  Result<> CheckLegacySecret(const TokenClaims& claims, const ObjectIdentity& secret,
                             std::string_view token) const;
  bool VerifySignature(const ParsedToken& token) const;

  const Options options_;
  const IdentityLookup lookup_;
  Clock& clock_;
  Mutex mutex_;
  std::unordered_map<std::string, ClaimsPtr> verified_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
