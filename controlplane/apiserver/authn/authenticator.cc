#include "controlplane/apiserver/authn/authenticator.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/http/signing_key.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kWebSocketTokenPrefix = "base64url.bearer.authorization.k8s.io.";
// Longer ones are nobody's, and cost a look at each byte.
constexpr size_t kMaxToken = 64 << 10;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// From the Authorization header, or from a WebSocket subprotocol (browsers cannot set headers there).
std::string BearerToken(const http::Headers& headers) {
  std::string_view header = Trim(headers.Get("Authorization"));
  constexpr std::string_view kBearer = "bearer ";
  if (header.size() > kBearer.size() && http::EqualsIgnoreCase(header.substr(0, kBearer.size()), kBearer)) {
    return std::string(Trim(header.substr(kBearer.size())));
  }
  for (std::string_view protocols : headers.All("Sec-WebSocket-Protocol")) {
    while (!protocols.empty()) {
      size_t comma = std::min(protocols.find(','), protocols.size());
      std::string_view protocol = Trim(protocols.substr(0, comma));
      protocols.remove_prefix(std::min(comma + 1, protocols.size()));
      if (protocol.substr(0, kWebSocketTokenPrefix.size()) != kWebSocketTokenPrefix) continue;
      Result<std::string> token = http::Base64UrlDecode(protocol.substr(kWebSocketTokenPrefix.size()));
      return token ? *token : "";
    }
  }
  return "";
}

// Everybody with good credentials is in one of the two groups.
void AddAuthenticatedGroup(User& user) {
  if (!user.InGroup(kGroupAuthenticated) && !user.InGroup(kGroupUnauthenticated))
    user.groups.emplace_back(kGroupAuthenticated);
}

// Who shows a certificate wants to be somebody: one that is of no use is not overlooked.
bool IsCertificateRefused(const http::ServerRequest& request, Clock& clock) {
  if (request.peer_refused) return true;
  return request.peer && (!request.peer->from_client_ca || clock.Now() > request.peer->not_after);
}

User UserOfCertificate(const http::PeerCertificate& peer) {
  User user{peer.common_name, "", peer.organizations, {}};
  if (!peer.sha256_fingerprint.empty()) {
    user.extra["authentication.kubernetes.io/credential-id"] = {"X509SHA256=" + peer.sha256_fingerprint};
  }
  return user;
}

void CountAttempt(const char* result) {
  static metrics::Family& attempts = metrics::Counter(
      "authentication_attempts", "Requests by what became of their credentials.", {"result"});
  attempts.With({result}).Increment();
}

}  // namespace

Result<TokenAnswer> Authenticator::AuthenticateToken(std::string_view token,
                                                     const std::vector<std::string>& audiences) const {
  std::vector<std::string> errors;
  if (token.size() <= kMaxToken) {
    for (const auto& verifier : options_.tokens) {
      Result<std::optional<TokenAnswer>> answer =
          verifier->Authenticate(token, audiences.empty() ? options_.api_audiences : audiences);
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
  if (std::optional<User> user = UserOfProxy(options_.request_header, request)) {
    CountAttempt("success");
    AddAuthenticatedGroup(*user);
    return std::move(*user);
  }
  const bool refused = IsCertificateRefused(request, clock_);
  if (request.peer && !refused && !request.peer->common_name.empty()) {
    CountAttempt("success");
    User user = UserOfCertificate(*request.peer);
    AddAuthenticatedGroup(user);
    return user;
  }
  std::string token = BearerToken(request.headers);
  if (!token.empty()) {
    Result<TokenAnswer> answer = AuthenticateToken(token, {});
    CountAttempt(answer ? "success" : "error");
    if (answer) return std::move(answer->user);
    log::Warn("Token refused", {{"from", request.remote_address}, {"reason", answer.error()}});
    return Error(Code::kUnauthenticated, "Unauthorized");
  }
  const AnonymousOptions& anonymous = options_.anonymous;
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
