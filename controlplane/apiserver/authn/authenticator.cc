#include "controlplane/apiserver/authn/authenticator.h"

#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kWebSocketTokenPrefix = "base64url.bearer.authorization.k8s.io.";

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

// One line of comma-separated values, of which some may stand in double quotes.
std::vector<std::string> SplitCsv(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  for (std::string& field : out) field = Trim(field);
  return out;
}

// From the Authorization header, or from a WebSocket subprotocol (browsers cannot set headers there).
std::string BearerToken(const http::Headers& headers) {
  std::string_view header = Trim(headers.Get("Authorization"));
  constexpr std::string_view kBearer = "bearer ";
  if (header.size() > kBearer.size() && http::EqualsIgnoreCase(header.substr(0, kBearer.size()), kBearer)) {
    return std::string(Trim(header.substr(kBearer.size())));
  }
  for (std::string_view protocols : headers.All("Sec-WebSocket-Protocol")) {
    for (const std::string& protocol : SplitCsv(protocols)) {
      if (std::string_view(protocol).substr(0, kWebSocketTokenPrefix.size()) != kWebSocketTokenPrefix)
        continue;
      Result<std::string> token =
          http::Base64UrlDecode(std::string_view(protocol).substr(kWebSocketTokenPrefix.size()));
      return token ? *token : "";
    }
  }
  return "";
}

}  // namespace

Result<std::map<std::string, User, std::less<>>> Authenticator::ParseTokenFile(std::string_view text) {
  std::map<std::string, User, std::less<>> out;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = Trim(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> fields = SplitCsv(line);
    if (fields.size() < 3 || fields[0].empty()) {
      return Error(Code::kInvalid, "token file: a line needs at least token, user name and user uid");
    }
    User user{fields[1], fields[2], {}, {}};
    if (fields.size() > 3) {
      for (std::string& group : SplitCsv(fields[3])) {
        if (!group.empty()) user.groups.push_back(std::move(group));
      }
    }
    out[fields[0]] = std::move(user);
  }
  return out;
}

Authenticator::Authenticator(std::map<std::string, User, std::less<>> static_tokens,
                             std::shared_ptr<TokenAuthenticator> tokens)
    : static_tokens_(std::move(static_tokens)), tokens_(std::move(tokens)) {}

Result<TokenAuthenticator::Answer> Authenticator::AuthenticateToken(
    std::string_view token, const std::vector<std::string>& audiences) const {
  if (auto it = static_tokens_.find(token); it != static_tokens_.end()) {
    TokenAuthenticator::Answer answer{it->second, audiences};
    answer.user.groups.emplace_back(kGroupAuthenticated);
    return answer;
  }
  if (tokens_) {
    ASSIGN_OR_RETURN(std::optional<TokenAuthenticator::Answer> answer,
                     tokens_->Authenticate(token, audiences));
    if (answer) {
      answer->user.groups.emplace_back(kGroupAuthenticated);
      return std::move(*answer);
    }
  }
  return Error(Code::kUnauthenticated, "invalid bearer token");
}

Result<User> Authenticator::Authenticate(const http::ServerRequest& request) const {
  if (request.peer && !request.peer->common_name.empty()) {
    User user{request.peer->common_name, "", request.peer->organizations, {}};
    user.groups.emplace_back(kGroupAuthenticated);
    if (!request.peer->sha256_fingerprint.empty()) {
      user.extra["authentication.kubernetes.io/credential-id"] = {"X509SHA256=" +
                                                                  request.peer->sha256_fingerprint};
    }
    return user;
  }
  std::string token = BearerToken(request.headers);
  if (token.empty()) return AnonymousUser();
  Result<TokenAuthenticator::Answer> answer = AuthenticateToken(token, {});
  if (answer) return std::move(answer->user);
  log::Warn("Token refused", {{"from", request.remote_address}, {"reason", answer.error()}});
  return Error(Code::kUnauthenticated, "Unauthorized");
}

}  // namespace keelson::apiserver
