#include "controlplane/apiserver/authn/token.h"

#include <algorithm>

#include <boost/json.hpp>

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr std::string_view kPrivateClaims = "kubernetes.io";
constexpr size_t kMaxCached = 4096;
// A pod that is being deleted keeps its token this long, so that it can still say goodbye.
constexpr std::chrono::seconds kDeletedGrace{60};

json::object ToJson(const TokenClaims::Object& object) {
  return {{"name", object.name}, {"uid", object.uid}};
}

std::string_view Text(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

int64_t Seconds(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (!value) return 0;
  if (value->is_double()) return static_cast<int64_t>(value->get_double());
  boost::system::error_code error;
  int64_t seconds = value->to_number<int64_t>(error);
  return error ? 0 : seconds;
}

std::optional<TokenClaims::Object> ObjectClaim(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (!value || !value->is_object()) return std::nullopt;
  const json::object& claim = value->get_object();
  return TokenClaims::Object{std::string(Text(claim, "name")), std::string(Text(claim, "uid"))};
}

std::vector<std::string> Audiences(const json::object& object) {
  std::vector<std::string> out;
  const json::value* value = object.if_contains("aud");
  if (value && value->is_string()) out.emplace_back(value->get_string());
  if (value && value->is_array()) {
    for (const json::value& one : value->get_array()) {
      if (one.is_string()) out.emplace_back(one.get_string());
    }
  }
  return out;
}

Result<json::object> DecodePart(std::string_view part) {
  ASSIGN_OR_RETURN(std::string text, http::Base64UrlDecode(part));
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return Error(Code::kBadRequest, "token part is no JSON object");
  return std::move(value.get_object());
}

bool Contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

Error Unauthenticated(std::string message) { return Error(Code::kUnauthenticated, std::move(message)); }

}  // namespace

Result<std::string> SignToken(const TokenClaims& claims, const http::SigningKey& key) {
  json::object header{{"alg", key.algorithm()}, {"kid", key.id()}};
  json::object kubernetes{{"namespace", claims.ns}, {"serviceaccount", ToJson(claims.service_account)}};
  if (claims.pod) kubernetes["pod"] = ToJson(*claims.pod);
  if (claims.node) kubernetes["node"] = ToJson(*claims.node);
  if (claims.secret) kubernetes["secret"] = ToJson(*claims.secret);
  json::object payload{{"aud", json::value_from(claims.audiences)},
                       {"exp", claims.expires},
                       {"iat", claims.issued_at},
                       {"iss", claims.issuer},
                       {"jti", claims.id},
                       {kPrivateClaims, std::move(kubernetes)},
                       {"nbf", claims.not_before},
                       {"sub", claims.subject}};
  std::string token =
      http::Base64UrlEncode(json::serialize(header)) + "." + http::Base64UrlEncode(json::serialize(payload));
  ASSIGN_OR_RETURN(std::string signature, key.Sign(token));
  return token + "." + http::Base64UrlEncode(signature);
}

Result<ParsedToken> ParseToken(std::string_view token) {
  auto first = token.find('.');
  auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) {
    return Error(Code::kBadRequest, "token is no JWT");
  }
  ParsedToken out;
  ASSIGN_OR_RETURN(json::object header, DecodePart(token.substr(0, first)));
  ASSIGN_OR_RETURN(json::object payload, DecodePart(token.substr(first + 1, second - first - 1)));
  ASSIGN_OR_RETURN(out.signature, http::Base64UrlDecode(token.substr(second + 1)));
  out.signed_part = token.substr(0, second);
  out.algorithm = Text(header, "alg");
  out.key_id = Text(header, "kid");
  TokenClaims& claims = out.claims;
  claims.issuer = Text(payload, "iss");
  claims.subject = Text(payload, "sub");
  claims.id = Text(payload, "jti");
  claims.audiences = Audiences(payload);
  claims.expires = Seconds(payload, "exp");
  claims.not_before = Seconds(payload, "nbf");
  claims.issued_at = Seconds(payload, "iat");
  if (const json::value* kubernetes = payload.if_contains(kPrivateClaims);
      kubernetes && kubernetes->is_object()) {
    const json::object& object = kubernetes->get_object();
    claims.ns = Text(object, "namespace");
    claims.service_account = ObjectClaim(object, "serviceaccount").value_or(TokenClaims::Object{});
    claims.pod = ObjectClaim(object, "pod");
    claims.node = ObjectClaim(object, "node");
    claims.secret = ObjectClaim(object, "secret");
  }
  return out;
}

TokenAuthenticator::TokenAuthenticator(Options options, IdentityLookup lookup, Clock& clock)
    : options_(std::move(options)), lookup_(std::move(lookup)), clock_(clock) {}

bool TokenAuthenticator::VerifySignature(const ParsedToken& token) const {
  for (const http::SigningKey& key : options_.keys) {
    if (!token.key_id.empty() && key.id() != token.key_id) continue;
    if (key.algorithm() == token.algorithm && key.Verify(token.signed_part, token.signature)) return true;
  }
  return false;
}

Result<std::optional<TokenClaims>> TokenAuthenticator::Verified(std::string_view token) {
  {
    MutexLock lock(mutex_);
    if (auto it = verified_.find(std::string(token)); it != verified_.end()) {
      return std::optional<TokenClaims>(it->second);
    }
  }
  Result<ParsedToken> parsed = ParseToken(token);
  if (!parsed || !Contains(options_.issuers, parsed->claims.issuer)) return std::optional<TokenClaims>();
  if (!VerifySignature(*parsed)) return Unauthenticated("invalid signature");
  MutexLock lock(mutex_);
  if (verified_.size() >= kMaxCached) verified_.clear();
  verified_.emplace(token, parsed->claims);
  return std::optional<TokenClaims>(std::move(parsed->claims));
}

Result<> TokenAuthenticator::CheckObjects(const TokenClaims& claims) const {
  auto check = [&](std::string_view resource, std::string_view what, std::string_view ns,
                   const TokenClaims::Object& object) -> Result<> {
    std::optional<ObjectIdentity> found = lookup_(resource, ns, object.name);
    if (!found) return Unauthenticated(std::string(what) + " has been deleted");
    if (found->uid != object.uid) {
      return Unauthenticated(std::string(what) + " UID (" + found->uid + ") does not match claim (" +
                             object.uid + ")");
    }
    if (found->deleted && *found->deleted + kDeletedGrace < clock_.Now()) {
      return Unauthenticated(std::string(what) + " has been deleted");
    }
    return {};
  };
  RETURN_IF_ERROR(check("serviceaccounts", "service account", claims.ns, claims.service_account));
  if (claims.pod) RETURN_IF_ERROR(check("pods", "pod", claims.ns, *claims.pod));
  if (claims.secret) RETURN_IF_ERROR(check("secrets", "secret", claims.ns, *claims.secret));
  // Of a pod's token the node is information; only a token bound to a node alone dies with it.
  if (claims.node && !claims.pod) RETURN_IF_ERROR(check("nodes", "node", "", *claims.node));
  return {};
}

Result<std::optional<TokenAuthenticator::Answer>> TokenAuthenticator::Authenticate(
    std::string_view token, const std::vector<std::string>& audiences) {
  ASSIGN_OR_RETURN(std::optional<TokenClaims> found, Verified(token));
  if (!found) return std::optional<Answer>();
  const TokenClaims& claims = *found;
  int64_t now = std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
  if (claims.expires != 0 && now >= claims.expires)
    return Unauthenticated("service account token has expired");
  if (claims.not_before != 0 && now < claims.not_before) {
    return Unauthenticated("service account token is not valid yet");
  }
  const std::vector<std::string>& wanted = audiences.empty() ? options_.api_audiences : audiences;
  Answer answer;
  for (const std::string& audience : wanted) {
    if (Contains(claims.audiences, audience)) answer.audiences.push_back(audience);
  }
  if (answer.audiences.empty()) return Unauthenticated("token audiences do not include this server");
  std::string subject(kUserServiceAccountPrefix);
  subject += claims.ns + ":" + claims.service_account.name;
  if (claims.subject != subject) return Unauthenticated("token subject does not match its service account");
  RETURN_IF_ERROR(CheckObjects(claims));

  User& user = answer.user;
  user.name = subject;
  user.uid = claims.service_account.uid;
  user.groups = {std::string(kGroupServiceAccounts), std::string(kGroupServiceAccounts) + ":" + claims.ns};
  if (!claims.id.empty()) user.extra["authentication.kubernetes.io/credential-id"] = {"JTI=" + claims.id};
  if (claims.pod) {
    user.extra["authentication.kubernetes.io/pod-name"] = {claims.pod->name};
    user.extra["authentication.kubernetes.io/pod-uid"] = {claims.pod->uid};
  }
  if (claims.node) {
    user.extra["authentication.kubernetes.io/node-name"] = {claims.node->name};
    user.extra["authentication.kubernetes.io/node-uid"] = {claims.node->uid};
  }
  return std::optional<Answer>(std::move(answer));
}

}  // namespace keelson::apiserver
