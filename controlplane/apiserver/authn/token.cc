#include "controlplane/apiserver/authn/token.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/authn/jwt.h"
#include "lib/api/meta.h"
#include "lib/base/base64.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

metrics::Value& stale_tokens = metrics::Counter("serviceaccount_stale_tokens_total",
                                                "Cumulative stale projected service account tokens used")
                                   .With();
metrics::Value& valid_tokens = metrics::Counter("serviceaccount_valid_tokens_total",
                                                "Cumulative valid projected service account tokens used")
                                   .With();
metrics::Value& legacy_tokens =
    metrics::Counter("serviceaccount_legacy_tokens_total", "Cumulative legacy service account tokens used")
        .With();
metrics::Value& invalid_legacy_tokens =
    metrics::Counter("serviceaccount_invalid_legacy_auto_token_uses_total",
                     "Cumulative invalid auto-generated legacy tokens used")
        .With();

namespace json = boost::json;

constexpr std::string_view kPrivateClaims = "kubernetes.io";
constexpr size_t kMaxCached = 4096;
// The token of a terminating pod stays valid for this long after its deletion time.
constexpr std::chrono::seconds kDeletedGrace{60};
// The allowed clock skew between signers.
constexpr int64_t kLeewaySeconds = 60;

json::object ToJson(const TokenClaims::Object& object) {
  return {{"name", object.name}, {"uid", object.uid}};
}

std::optional<TokenClaims::Object> ObjectClaim(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (!value || !value->is_object()) return std::nullopt;
  const json::object& claim = value->get_object();
  return TokenClaims::Object{std::string(TextClaim(claim, "name")), std::string(TextClaim(claim, "uid"))};
}

bool Contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

Error Unauthenticated(std::string message) { return Error(Code::kUnauthenticated, std::move(message)); }

}  // namespace

Result<std::string> SignToken(const TokenClaims& claims, const crypto::SigningKey& key) {
  json::object header{{"alg", key.algorithm()}, {"kid", key.id()}};
  json::object kubernetes{{"namespace", claims.ns}, {"serviceaccount", ToJson(claims.service_account)}};
  if (claims.pod) kubernetes["pod"] = ToJson(*claims.pod);
  if (claims.node) kubernetes["node"] = ToJson(*claims.node);
  if (claims.secret) kubernetes["secret"] = ToJson(*claims.secret);
  if (claims.warn_after != 0) kubernetes["warnafter"] = claims.warn_after;
  json::object payload{{"aud", json::value_from(claims.audiences)},
                       {"exp", claims.expires},
                       {"iat", claims.issued_at},
                       {"iss", claims.issuer},
                       {"jti", claims.id},
                       {kPrivateClaims, std::move(kubernetes)},
                       {"nbf", claims.not_before},
                       {"sub", claims.subject}};
  std::string token = EncodeBase64(json::serialize(header), Base64::kRawUrl) + "." +
                      EncodeBase64(json::serialize(payload), Base64::kRawUrl);
  KEELSON_ASSIGN_OR_RETURN(std::string signature, key.Sign(token));
  return token + "." + EncodeBase64(signature, Base64::kRawUrl);
}

namespace {

// The long claim names of legacy tokens.
void ReadLegacyClaims(const json::object& payload, TokenClaims& claims) {
  auto claim = [&](const char* name) {
    return std::string(TextClaim(payload, std::string("kubernetes.io/serviceaccount/") + name));
  };
  claims.legacy = true;
  claims.ns = claim("namespace");
  claims.service_account = {claim("service-account.name"), claim("service-account.uid")};
  claims.secret = TokenClaims::Object{claim("secret.name"), ""};
}

}  // namespace

Result<ParsedToken> ParseToken(std::string_view token) {
  KEELSON_ASSIGN_OR_RETURN(Jwt jwt, DecodeJwt(token));
  const json::object& payload = jwt.payload;
  ParsedToken out;
  out.signature = std::move(jwt.signature);
  out.signed_part = jwt.signed_part;
  out.algorithm = std::move(jwt.algorithm);
  out.key_id = std::move(jwt.key_id);
  TokenClaims& claims = out.claims;
  claims.issuer = TextClaim(payload, "iss");
  claims.subject = TextClaim(payload, "sub");
  claims.id = TextClaim(payload, "jti");
  claims.audiences = AudienceClaim(payload);
  claims.expires = SecondsClaim(payload, "exp");
  claims.not_before = SecondsClaim(payload, "nbf");
  claims.issued_at = SecondsClaim(payload, "iat");
  if (claims.issuer == kLegacyIssuer) {
    ReadLegacyClaims(payload, claims);
  } else if (const json::value* kubernetes = payload.if_contains(kPrivateClaims);
             kubernetes && kubernetes->is_object()) {
    const json::object& object = kubernetes->get_object();
    claims.ns = TextClaim(object, "namespace");
    claims.service_account = ObjectClaim(object, "serviceaccount").value_or(TokenClaims::Object{});
    claims.pod = ObjectClaim(object, "pod");
    claims.node = ObjectClaim(object, "node");
    claims.secret = ObjectClaim(object, "secret");
    claims.warn_after = SecondsClaim(object, "warnafter");
  }
  return out;
}

TokenAuthenticator::TokenAuthenticator(Options options, IdentityLookup lookup, Clock& clock)
    : options_(std::move(options)), lookup_(std::move(lookup)), clock_(clock) {}

// The key determines the algorithm, not the token's header.
bool TokenAuthenticator::VerifySignature(const ParsedToken& token) const {
  bool known = std::any_of(options_.keys.begin(), options_.keys.end(),
                           [&](const crypto::SigningKey& key) { return key.id() == token.key_id; });
  for (const crypto::SigningKey& key : options_.keys) {
    if (known && key.id() != token.key_id) continue;
    if (key.algorithm() == token.algorithm && key.Verify(token.signed_part, token.signature)) return true;
  }
  return false;
}

Result<TokenAuthenticator::ClaimsPtr> TokenAuthenticator::Verified(std::string_view token) {
  std::string key(token);
  {
    MutexLock lock(mutex_);
    if (auto it = verified_.find(key); it != verified_.end()) return it->second;
  }
  Result<ParsedToken> parsed = ParseToken(token);
  if (!parsed) return ClaimsPtr();
  const std::string& issuer = parsed->claims.issuer;
  if (issuer != kLegacyIssuer && !Contains(options_.issuers, issuer)) return ClaimsPtr();
  if (!VerifySignature(*parsed)) return Unauthenticated("invalid signature");
  auto claims = std::make_shared<const TokenClaims>(std::move(parsed->claims));
  MutexLock lock(mutex_);
  if (verified_.size() >= kMaxCached) verified_.clear();
  verified_.emplace(std::move(key), claims);
  return claims;
}

Result<> TokenAuthenticator::CheckTimes(const TokenClaims& claims) const {
  int64_t now = std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
  if (claims.expires != 0 && now - kLeewaySeconds >= claims.expires) {
    return Unauthenticated("service account token has expired");
  }
  if (claims.not_before != 0 && now + kLeewaySeconds < claims.not_before) {
    return Unauthenticated("service account token is not valid yet");
  }
  bool stale = claims.warn_after != 0 && now > claims.warn_after;
  (stale ? stale_tokens : valid_tokens).Increment();
  return {};
}

std::string DateOf(WallTime time) { return api::FormatTime(api::ToTime(time)).substr(0, 10); }

// Records the use of invalid tokens, too: the cleaner must know that they are still in use.
Result<> TokenAuthenticator::CheckLegacySecret(const TokenClaims& claims, const ObjectIdentity& secret,
                                               std::string_view token) const {
  if (secret.token != token) return Unauthenticated("token does not match its secret");
  legacy_tokens.Increment();
  const std::string today = DateOf(clock_.Now()), tomorrow = DateOf(clock_.Now() + std::chrono::hours(24));
  // Another server may already be on the next day.
  if (options_.mark_used && secret.last_used != today && secret.last_used != tomorrow) {
    options_.mark_used(claims.ns, claims.secret->name, today);
  }
  if (!secret.token_invalid) return {};
  invalid_legacy_tokens.Increment();
  return Unauthenticated(fmt::format(
      "the token in secret {}/{} for service account {}/{} has been marked invalid. Use tokens from "
      "the TokenRequest API or manually created secret-based tokens, or remove the '{}' label from the "
      "secret to temporarily allow use of this token",
      claims.ns, claims.secret->name, claims.ns, claims.service_account.name, kTokenInvalidLabel));
}

Result<> TokenAuthenticator::CheckObjects(const TokenClaims& claims, std::string_view token) const {
  auto check = [&](std::string_view resource, std::string_view what, std::string_view ns,
                   const TokenClaims::Object& object) -> Result<ObjectIdentity> {
    std::optional<ObjectIdentity> found = lookup_(resource, ns, object.name);
    if (!found) return Unauthenticated(std::string(what) + " has been deleted");
    // A legacy token contains only the name of its Secret.
    bool same = found->uid == object.uid || (claims.legacy && resource == "secrets");
    if (!same) {
      return Unauthenticated(std::string(what) + " UID (" + found->uid + ") does not match claim (" +
                             object.uid + ")");
    }
    if (found->deleted && clock_.Now() >= *found->deleted + kDeletedGrace) {
      return Unauthenticated(std::string(what) + " has been deleted");
    }
    return std::move(*found);
  };
  auto account = check("serviceaccounts", "service account", claims.ns, claims.service_account);
  if (!account) return account.error();
  if (claims.pod) {
    if (auto pod = check("pods", "pod", claims.ns, *claims.pod); !pod) return pod.error();
  }
  if (claims.secret) {
    auto secret = check("secrets", "secret", claims.ns, *claims.secret);
    if (!secret) return secret.error();
    if (claims.legacy) KEELSON_RETURN_IF_ERROR(CheckLegacySecret(claims, *secret, token));
  }
  // In a pod-bound token the node is informational; only a node-bound token depends on the node.
  if (claims.node && !claims.pod) {
    if (auto node = check("nodes", "node", "", *claims.node); !node) return node.error();
  }
  return {};
}

Result<std::optional<TokenAnswer>> TokenAuthenticator::Authenticate(
    std::string_view token, const std::vector<std::string>& audiences) {
  KEELSON_ASSIGN_OR_RETURN(ClaimsPtr found, Verified(token));
  if (!found) return std::optional<TokenAnswer>();
  const TokenClaims& claims = *found;
  KEELSON_RETURN_IF_ERROR(CheckTimes(claims));
  TokenAnswer answer;
  answer.audiences = Intersect(audiences, claims.legacy ? options_.api_audiences : claims.audiences);
  if (answer.audiences.empty()) return Unauthenticated("token audiences do not include this server");
  std::string subject(kUserServiceAccountPrefix);
  subject += claims.ns + ":" + claims.service_account.name;
  if (claims.subject != subject) return Unauthenticated("token subject does not match its service account");
  if (options_.lookup) KEELSON_RETURN_IF_ERROR(CheckObjects(claims, token));

  User& user = answer.user;
  user.name = subject;
  user.uid = claims.service_account.uid;
  user.groups = {std::string(kGroupServiceAccounts), std::string(kGroupServiceAccounts) + ":" + claims.ns};
  auto tell = [&](const char* what, const std::string& value) {
    if (!value.empty()) user.extra[std::string("authentication.kubernetes.io/") + what] = {value};
  };
  if (!claims.id.empty()) tell("credential-id", "JTI=" + claims.id);
  if (claims.pod) {
    tell("pod-name", claims.pod->name);
    tell("pod-uid", claims.pod->uid);
  }
  if (claims.node) {
    tell("node-name", claims.node->name);
    tell("node-uid", claims.node->uid);
  }
  return std::optional<TokenAnswer>(std::move(answer));
}

}  // namespace keelson::apiserver
