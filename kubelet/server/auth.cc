#include "kubelet/server/auth.h"

#include "lib/base/text.h"

namespace keelson::kubelet::server {
namespace {

bool IsUnder(std::string_view path, std::string_view root) {
  return path.substr(0, root.size()) == root && (path.size() == root.size() || path[root.size()] == '/');
}

std::string BearerToken(const http::ServerRequest& request) {
  std::string_view value = request.headers.Get("Authorization");
  if (value.size() < 7 || !EqualsIgnoreCase(value.substr(0, 7), "Bearer ")) return "";
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
  } else if (IsUnder(path, "/statusz")) {
    access.subresources = {"statusz", "proxy"};
  } else if (IsUnder(path, "/flagz")) {  // they may do what fields of the configuration do
    access.subresources = {"configz", "proxy"};
  } else {
    access.subresources = {"proxy"};
  }
  return access;
}

Auth::Auth(const KubeletServerOptions& options, client::RestClient api, Clock& clock)
    : options_(options),
      clock_(clock),
      reviews_(api, api, {options.authentication_ttl, options.authorized_ttl, options.unauthorized_ttl},
               clock) {}

Result<User> Auth::Authenticate(const http::ServerRequest& request) {
  const bool refused = request.peer_refused || (request.peer && !request.peer->NamesUser(clock_.Now()));
  if (request.peer && !refused && !request.peer->common_name.empty()) {
    User user{request.peer->common_name, request.peer->uid, request.peer->organizations, {}};
    user.groups.push_back("system:authenticated");
    return user;
  }
  std::string token = BearerToken(request);
  if (!token.empty() && options_.webhook_authentication) return reviews_.Review(token);
  // Who shows a certificate that is of no use wants to be somebody.
  if (token.empty() && !refused && options_.anonymous) {
    return User{"system:anonymous", "", {"system:unauthenticated"}, {}};
  }
  return Error(Code::kUnauthenticated, "Unauthorized");
}

Result<> Auth::Authorize(const User& user, const Access& access) {
  if (!options_.webhook_authorization) return {};
  std::string names;
  for (const std::string& subresource : access.subresources) {
    KEELSON_ASSIGN_OR_RETURN(bool allowed, Allowed(user, access.verb, subresource));
    if (allowed) return {};
    names += (names.empty() ? "" : " ") + subresource;
  }
  return Error(Code::kForbidden, "Forbidden (user=" + user.name + ", verb=" + access.verb +
                                     ", resource=nodes, subresource(s)=[" + names + "])");
}

Result<bool> Auth::Allowed(const User& user, const std::string& verb, const std::string& subresource) {
  authorizationv1::SubjectAccessReviewSpec spec;
  auto& what = *spec.mutable_resource_attributes();
  what.set_verb(verb);
  what.set_version("v1");
  what.set_resource("nodes");
  what.set_subresource(subresource);
  what.set_name(options_.node_name);
  Result<bool> allowed = reviews_.Allowed(user, spec);
  if (allowed) return allowed;
  return Error(Code::kInternal, "Authorization error (user=" + user.name + ", verb=" + verb +
                                    ", resource=nodes, subresource=" + subresource + ")");
}

}  // namespace keelson::kubelet::server
