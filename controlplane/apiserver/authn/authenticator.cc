#include "controlplane/apiserver/authn/authenticator.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kWebSocketTokenPrefix = "base64url.bearer.authorization.k8s.io.";
// Longer tokens are rejected without parsing.
constexpr size_t kMaxToken = 64 << 10;

constexpr std::string_view kBlank = " \t";

// The token from the Authorization header or a WebSocket subprotocol (browsers cannot set headers there).
std::string BearerToken(const http::Headers& headers) {
  std::string_view header = Trim(headers.Get("Authorization"), kBlank);
  constexpr std::string_view kBearer = "bearer ";
  if (header.size() > kBearer.size() && EqualsIgnoreCase(header.substr(0, kBearer.size()), kBearer)) {
    return std::string(Trim(header.substr(kBearer.size()), kBlank));
  }
  for (std::string_view protocols : headers.All("Sec-WebSocket-Protocol")) {
    while (!protocols.empty()) {
      size_t comma = std::min(protocols.find(','), protocols.size());
      std::string_view protocol = Trim(protocols.substr(0, comma), kBlank);
      protocols.remove_prefix(std::min(comma + 1, protocols.size()));
      if (protocol.substr(0, kWebSocketTokenPrefix.size()) != kWebSocketTokenPrefix) continue;
      Result<std::string> token =
          DecodeBase64(protocol.substr(kWebSocketTokenPrefix.size()), Base64::kRawUrl);
      return token ? *token : "";
    }
  }
  return "";
}

// Every authenticated user is in one of these two groups.
void AddAuthenticatedGroup(User& user) {
  if (!user.InGroup(kGroupAuthenticated) && !user.InGroup(kGroupUnauthenticated)) {
    user.groups.emplace_back(kGroupAuthenticated);
  }
}

// An invalid client certificate is an error, not anonymous.
bool IsCertificateRefused(const http::ServerRequest& request, Clock& clock) {
  if (request.peer_refused) return true;
  return request.peer && !request.peer->NamesUser(clock.Now());
}

User UserOfCertificate(const crypto::PeerCertificate& peer) {
  User user{peer.common_name, peer.uid, peer.organizations, {}};
  if (!peer.sha256_fingerprint.empty()) {
    user.extra["authentication.kubernetes.io/credential-id"] = {"X509SHA256=" + peer.sha256_fingerprint};
  }
  return user;
}

metrics::Family& attempts_total =
    metrics::Counter("authentication_attempts", "Counter of authenticated attempts.", {"result"});
metrics::Family& user_requests = metrics::Counter(
    "authenticated_user_requests", "Counter of authenticated requests broken out by username.", {"username"});
metrics::Family& lifetimes = metrics::Histograms(
    "apiserver_client_certificate_expiration_seconds",
    "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
    {0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000});
metrics::Family& authentication_seconds = metrics::Histograms(
    "authentication_duration_seconds", "Authentication duration in seconds broken out by result.",
    metrics::ExponentialBuckets(0.001, 2, 15), {"result"});

void CountAttempt(const char* result) { attempts_total.With({result}).Increment(); }

// Counts other user names as "other", to limit the number of series.
void CountUser(const User& user) {
  const bool known = user.name == "admin" || user.name == "client" || user.name == "kube_proxy" ||
                     user.name == "kubelet" || user.name == "system:serviceaccount:kube-system:default";
  static metrics::Value& others = user_requests.With({"other"});
  (known ? user_requests.With({user.name}) : others).Increment();
}

void ObserveExpiration(const crypto::PeerCertificate& peer, WallTime now) {
  static metrics::Histogram& left = lifetimes.HistogramWith();
  left.Observe(std::chrono::duration<double>(peer.not_after - now).count());
}

}  // namespace

Result<TokenAnswer> Authenticator::AuthenticateToken(std::string_view token,
                                                     const std::vector<std::string>& audiences) const {
  return Ask(*options_.load(), token, audiences);
}

Result<TokenAnswer> Authenticator::Ask(const Options& options, std::string_view token,
                                       const std::vector<std::string>& audiences) {
  std::vector<std::string> errors;
  if (token.size() <= kMaxToken) {
    for (const auto& verifier : options.tokens) {
      Result<std::optional<TokenAnswer>> answer =
          verifier->Authenticate(token, audiences.empty() ? options.api_audiences : audiences);
      if (!answer) errors.push_back(answer.error().message());
      if (!answer || !*answer) continue;
      AddAuthenticatedGroup((*answer)->user);
      return std::move(**answer);
    }
  }
  if (errors.empty()) return Error(Code::kUnauthenticated, "invalid bearer token");
  errors.insert(errors.begin(), "invalid bearer token");
  return Error(Code::kUnauthenticated, Aggregate(errors));
}

Result<User> Authenticator::Authenticate(const http::ServerRequest& request) const {
  static metrics::Histogram &good = authentication_seconds.HistogramWith({"success"}),
                            &bad = authentication_seconds.HistogramWith({"failure"});
  const SteadyTime begin = SteadyTime::clock::now();
  Result<User> user = Identify(request);
  if (user) CountUser(*user);
  (user ? good : bad).Observe(std::chrono::duration<double>(SteadyTime::clock::now() - begin).count());
  return user;
}

Result<User> Authenticator::Identify(const http::ServerRequest& request) const {
  const std::shared_ptr<const Options> options = options_.load();
  if (std::optional<User> user = UserOfProxy(options->request_header, request)) {
    CountAttempt("success");
    AddAuthenticatedGroup(*user);
    return std::move(*user);
  }
  const bool refused = IsCertificateRefused(request, clock_);
  if (request.peer && !refused && !request.peer->common_name.empty()) {
    CountAttempt("success");
    ObserveExpiration(*request.peer, clock_.Now());
    User user = UserOfCertificate(*request.peer);
    AddAuthenticatedGroup(user);
    return user;
  }
  std::string token = BearerToken(request.headers);
  if (!token.empty()) {
    Result<TokenAnswer> answer = Ask(*options, token, {});
    CountAttempt(answer ? "success" : "error");
    if (answer) return std::move(answer->user);
    log::Warn("Token refused", {{"from", request.remote_address}, {"err", answer.error()}});
    return Error(Code::kUnauthenticated, "Unauthorized");
  }
  const AnonymousOptions& anonymous = options->anonymous;
  if (anonymous.enabled && !refused &&
      (anonymous.paths.empty() ||
       std::find(anonymous.paths.begin(), anonymous.paths.end(), request.path) != anonymous.paths.end())) {
    CountAttempt("success");
    return AnonymousUser();
  }
  CountAttempt("failure");
  return Error(Code::kUnauthenticated, "Unauthorized");
}

}  // namespace keelson::apiserver
