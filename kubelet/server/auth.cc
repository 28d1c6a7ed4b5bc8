#include "kubelet/server/auth.h"

#include <algorithm>

#include "lib/base/log.h"

namespace keelson::kubelet::server {
namespace {

constexpr size_t kKept = 4096;

template <typename Cache>
void Prune(Cache& cache, SteadyTime now) {
  if (cache.size() < kKept) return;
  std::erase_if(cache, [&](const auto& entry) { return entry.second.until <= now; });
  if (cache.size() >= kKept) cache.clear();
}

bool IsUnder(std::string_view path, std::string_view root) {
  return path.substr(0, root.size()) == root && (path.size() == root.size() || path[root.size()] == '/');
}

std::string BearerToken(const http::ServerRequest& request) {
  std::string_view value = request.headers.Get("Authorization");
  if (value.size() < 7 || !http::EqualsIgnoreCase(value.substr(0, 7), "Bearer ")) return "";
  value.remove_prefix(7);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  return std::string(value);
}

}  // namespace

Access AccessOf(const http::ServerRequest& request) {
  Access access;
  const std::string& method = request.method;
  access.verb = method == "POST"     ? "create"
                : method == "GET"    ? "get"
                : method == "PUT"    ? "update"
                : method == "PATCH"  ? "patch"
                : method == "DELETE" ? "delete"
                                     : "";
  const std::string& path = request.path;
  if (IsUnder(path, "/stats")) {
    access.subresources = {"stats"};
  } else if (IsUnder(path, "/metrics")) {
    access.subresources = {"metrics"};
  } else if (IsUnder(path, "/logs")) {
    access.subresources = {"log"};
  } else if (IsUnder(path, "/checkpoint")) {
    access.subresources = {"checkpoint"};
  } else if (IsUnder(path, "/pods") || IsUnder(path, "/runningpods")) {
    access.subresources = {"pods", "proxy"};
  } else if (IsUnder(path, "/healthz")) {
    access.subresources = {"healthz", "proxy"};
  } else if (IsUnder(path, "/configz")) {
    access.subresources = {"configz", "proxy"};
  } else {
    access.subresources = {"proxy"};
  }
  return access;
}

Auth::Auth(const KubeletServerOptions& options, client::RestClient api, Clock& clock)
    : options_(options), api_(std::move(api)), clock_(clock) {}

Result<User> Auth::Authenticate(const http::ServerRequest& request) {
  const bool refused = request.peer_refused || (request.peer && clock_.Now() > request.peer->not_after);
  if (request.peer && !refused && !request.peer->common_name.empty()) {
    User user{request.peer->common_name, "", request.peer->organizations, {}};
    user.groups.push_back("system:authenticated");
    return user;
  }
  std::string token = BearerToken(request);
  if (!token.empty() && options_.webhook_authentication) return Review(token);
  // Who shows a certificate that is of no use wants to be somebody.
  if (token.empty() && !refused && options_.anonymous)
    return User{"system:anonymous", "", {"system:unauthenticated"}, {}};
  return Error(Code::kUnauthenticated, "Unauthorized");
}

Result<User> Auth::Review(const std::string& token) {
  SteadyTime now = clock_.SteadyNow();
  {
    MutexLock lock(mutex_);
    auto at = tokens_.find(token);
    if (at != tokens_.end() && at->second.until > now) {
      if (at->second.authenticated) return at->second.user;
      return Error(Code::kUnauthenticated, "Unauthorized");
    }
  }
  authenticationv1::TokenReview review;
  review.mutable_spec()->set_token(token);
  Result<authenticationv1::TokenReview> answer = api_.Create(review);
  if (!answer) {
    log::Warn("Token review failed", {{"error", answer.error()}});
    return Error(Code::kUnauthenticated, "Unauthorized");
  }
  const auto& status = answer->status();
  KnownUser known{{}, status.authenticated(), now + options_.authentication_ttl};
  known.user.name = status.user().username();
  known.user.uid = status.user().uid();
  known.user.groups.assign(status.user().groups().begin(), status.user().groups().end());
  for (const auto& [key, value] : status.user().extra()) {
    known.user.extra[key].assign(value.items().begin(), value.items().end());
  }
  MutexLock lock(mutex_);
  Prune(tokens_, now);
  tokens_[token] = known;
  if (!known.authenticated) return Error(Code::kUnauthenticated, "Unauthorized");
  return known.user;
}

Result<> Auth::Authorize(const User& user, const Access& access) {
  if (!options_.webhook_authorization) return {};
  std::string names;
  for (const std::string& subresource : access.subresources) {
    ASSIGN_OR_RETURN(bool allowed, Allowed(user, access.verb, subresource));
    if (allowed) return {};
    names += (names.empty() ? "" : ", ") + subresource;
  }
  return Error(Code::kForbidden, "Forbidden (user=" + user.name + ", verb=" + access.verb +
                                     ", resource=nodes, subresource(s)=[" + names + "])");
}

Result<bool> Auth::Allowed(const User& user, const std::string& verb, const std::string& subresource) {
  std::string key = user.name + '\0' + user.uid + '\0' + verb + '\0' + subresource;
  for (const std::string& group : user.groups) key += '\0' + group;
  for (const auto& [name, values] : user.extra) {
    key += std::string(2, '\0') + name;
    for (const std::string& value : values) key += '\0' + value;
  }
  SteadyTime now = clock_.SteadyNow();
  {
    MutexLock lock(mutex_);
    auto at = decisions_.find(key);
    if (at != decisions_.end() && at->second.until > now) return at->second.allowed;
  }
  authorizationv1::SubjectAccessReview review;
  auto& spec = *review.mutable_spec();
  spec.set_user(user.name);
  if (!user.uid.empty()) spec.set_uid(user.uid);
  for (const std::string& group : user.groups) spec.add_groups(group);
  for (const auto& [name, values] : user.extra) {
    for (const std::string& value : values) (*spec.mutable_extra())[name].add_items(value);
  }
  auto& what = *spec.mutable_resource_attributes();
  what.set_verb(verb);
  what.set_version("v1");
  what.set_resource("nodes");
  what.set_subresource(subresource);
  what.set_name(options_.node_name);
  Result<authorizationv1::SubjectAccessReview> answer = api_.Create(review);
  if (!answer) {
    log::Warn("Access review failed", {{"user", user.name}, {"error", answer.error()}});
    return Error(Code::kInternal, "Authorization error (user=" + user.name + ", verb=" + verb +
                                      ", resource=nodes, subresource=" + subresource + ")");
  }
  bool allowed = answer->status().allowed();
  MutexLock lock(mutex_);
  Prune(decisions_, now);
  decisions_[key] = {allowed, now + (allowed ? options_.authorized_ttl : options_.unauthorized_ttl)};
  return allowed;
}

}  // namespace keelson::kubelet::server
