#include "controlplane/apiserver/authn/oidc.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/authn/jwt.h"
#include "controlplane/apiserver/authn/oidc_keys.h"
#include "lib/crypto/digest.h"
#include "lib/k8s/field_error.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

// The allowed clock skew.
constexpr std::chrono::minutes kNotBeforeLeeway{5};

Error Refused(std::string_view why) { return Error(Code::kUnauthenticated, "oidc: " + std::string(why)); }

metrics::Family& verify_seconds = metrics::Histograms(
    "apiserver_authentication_jwt_authenticator_latency_seconds",
    "Latency of jwt authentication operations in seconds. This is the time spent authenticating a token for "
    "cache miss only (i.e. when the token is not found in the cache).",
    {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, {"jwt_issuer_hash", "result"});

class Verifier : public TokenVerifier {
 public:
  Verifier(OidcOptions options, std::string discovery_url, Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        keys_(options_.issuer_url, std::move(discovery_url), options_.ca_pem, clock) {}

  Result<std::optional<TokenAnswer>> Authenticate(std::string_view token,
                                                  const std::vector<std::string>& audiences) override {
    Result<Jwt> jwt = DecodeJwt(token);
    if (!jwt || TextClaim(jwt->payload, "iss") != options_.issuer_url) return std::optional<TokenAnswer>();
    const SteadyTime begin = SteadyTime::clock::now();
    Result<std::optional<TokenAnswer>> answer = Check(*jwt, audiences);
    const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
    verify_seconds.HistogramWith({issuer_hash_, answer ? "success" : "failure"}).Observe(took.count());
    return answer;
  }

 private:
  Result<std::optional<TokenAnswer>> Check(const Jwt& jwt, const std::vector<std::string>& audiences) {
    KEELSON_RETURN_IF_ERROR(CheckSignature(jwt));
    const json::object& claims = jwt.payload;
    KEELSON_RETURN_IF_ERROR(CheckTimes(claims));
    if (Intersect(AudienceClaim(claims), options_.audiences).empty()) {
      return Refused(fmt::format("verify token: oidc: expected audience in {} got {}",
                                 fmt::join(options_.audiences, " "), fmt::join(AudienceClaim(claims), " ")));
    }
    TokenAnswer answer;
    KEELSON_RETURN_IF_ERROR(MapClaims(claims, answer.user));
    if (std::string_view id = TextClaim(claims, "jti"); !id.empty()) {
      answer.user.extra["authentication.kubernetes.io/credential-id"] = {"JTI=" + std::string(id)};
    }
    KEELSON_RETURN_IF_ERROR(Mapped(EvaluateUserRules(*options_.expressions, answer.user)));
    // The token's audience must be one of the configured client IDs.
    answer.audiences = audiences;
    return std::optional<TokenAnswer>(std::move(answer));
  }

  // An error of an expression, as Refused() words others.
  template <typename T>
  static Result<T> Mapped(Result<T> result) {
    if (!result) return Refused(result.error().message());
    return result;
  }

  Result<> MapClaims(const json::object& claims, User& user) const {
    const ClaimExpressions& expressions = *options_.expressions;
    KEELSON_ASSIGN_OR_RETURN(
        user.name, expressions.username ? Mapped(EvaluateUserName(expressions, claims)) : UserName(claims));
    KEELSON_ASSIGN_OR_RETURN(
        user.groups, expressions.groups ? Mapped(EvaluateGroups(expressions, claims)) : Groups(claims));
    if (!options_.uid_claim.empty()) {
      user.uid = TextClaim(claims, options_.uid_claim);
      if (user.uid.empty()) {
        return Refused(fmt::format("parse uid claim {}: claim not present", k8s::Quote(options_.uid_claim)));
      }
    } else if (expressions.uid) {
      KEELSON_ASSIGN_OR_RETURN(user.uid, Mapped(EvaluateUid(expressions, claims)));
    }
    KEELSON_RETURN_IF_ERROR(Mapped(EvaluateExtra(expressions, claims, user)));
    KEELSON_RETURN_IF_ERROR(CheckRequired(claims));
    return Mapped(EvaluateClaimRules(expressions, claims));
  }

  Result<> CheckSignature(const Jwt& jwt) {
    const std::vector<std::string>& allowed = options_.algorithms;
    if (std::find(allowed.begin(), allowed.end(), jwt.algorithm) == allowed.end()) {
      return Refused("verify token: oidc: id token signed with unsupported algorithm");
    }
    Result<bool> verified = keys_.Verify(jwt.key_id, jwt.algorithm, jwt.signed_part, jwt.signature);
    if (!verified) return Error(Code::kUnauthenticated, verified.error().message());
    if (!*verified) return Refused("verify token: failed to verify signature");
    return {};
  }

  Result<> CheckTimes(const json::object& claims) const {
    auto now = std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch());
    if (now.count() >= SecondsClaim(claims, "exp")) return Refused("verify token: oidc: token is expired");
    if ((now + kNotBeforeLeeway).count() < SecondsClaim(claims, "nbf")) {
      return Refused("verify token: oidc: current time before the nbf (not before) time");
    }
    return {};
  }

  Result<> CheckRequired(const json::object& claims) const {
    for (const auto& required : options_.required_claims) {
      const json::value* value = claims.if_contains(required.first);
      if (!value) return Refused(fmt::format("required claim {} not present in ID token", required.first));
      if (!value->is_string() || value->get_string() != required.second) {
        return Refused(fmt::format("required claim {} value does not match", required.first));
      }
    }
    return {};
  }

  Result<std::string> UserName(const json::object& claims) const {
    const json::value* value = claims.if_contains(options_.username_claim);
    if (!value || !value->is_string() || value->get_string().empty()) {
      return Refused(
          fmt::format("parse username claims {}: claim not present", k8s::Quote(options_.username_claim)));
    }
    if (options_.username_claim == "email") {
      // An email claim needs email_verified.
      const json::value* verified = claims.if_contains("email_verified");
      if (verified && !(verified->is_bool() && verified->get_bool())) return Refused("email not verified");
    }
    return options_.username_prefix + std::string(value->get_string());
  }

  Result<std::vector<std::string>> Groups(const json::object& claims) const {
    std::vector<std::string> out;
    if (options_.groups_claim.empty()) return out;
    const json::value* value = claims.if_contains(options_.groups_claim);
    if (!value || value->is_null()) return out;
    auto add = [&](const json::value& group) {
      if (!group.is_string()) return false;
      out.push_back(options_.groups_prefix + std::string(group.get_string()));
      return true;
    };
    bool good = value->is_array() ? std::all_of(value->get_array().begin(), value->get_array().end(), add)
                                  : add(*value);
    if (!good) return Refused(fmt::format("parse groups claim {}", k8s::Quote(options_.groups_claim)));
    return out;
  }

  const OidcOptions options_;
  const std::string issuer_hash_ = "sha256:" + crypto::Sha256Hex(options_.issuer_url);
  Clock& clock_;
  OidcKeys keys_;
};

}  // namespace

Result<std::shared_ptr<TokenVerifier>> NewOidcVerifier(OidcOptions options, Clock& clock) {
  if (options.issuer_url.compare(0, 8, "https://") != 0) {
    return Error(Code::kInvalid,
                 "issuer URL " + k8s::Quote(options.issuer_url) + " must start with https://");
  }
  if (options.audiences.empty()) {
    return Error(Code::kInvalid, options.issuer_url + ": at least one audience (client id) is required");
  }
  if (options.username_claim.empty() && !options.expressions->username) {
    return Error(Code::kInvalid, options.issuer_url + ": a claim for the user name is required");
  }
  for (const std::string& algorithm : options.algorithms) {
    if (!crypto::IsSigningAlgorithm(algorithm)) {
      return Error(Code::kInvalid, "unsupported signing alg: " + k8s::Quote(algorithm));
    }
  }
  std::string discovery = options.discovery_url;
  if (discovery.empty()) {
    discovery = options.issuer_url;
    while (discovery.back() == '/') discovery.pop_back();
    discovery += "/.well-known/openid-configuration";
  }
  return std::shared_ptr<TokenVerifier>(
      std::make_shared<Verifier>(std::move(options), std::move(discovery), clock));
}

}  // namespace keelson::apiserver
