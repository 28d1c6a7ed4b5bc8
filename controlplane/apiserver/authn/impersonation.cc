#include "controlplane/apiserver/authn/impersonation.h"

#include <algorithm>

namespace keelson::apiserver {
namespace {

constexpr std::string_view kExtraPrefix = "impersonate-extra-";

Result<> Check(const User& user, const Authorizer& authorizer, RequestInfo request) {
  request.is_resource = true;
  request.verb = "impersonate";
  Attributes attributes{user, request};
  Decision decision = authorizer.Authorize(attributes);
  if (decision.allowed) return {};
  return ForbiddenTo(attributes, decision.reason);
}

// {namespace, name} of "system:serviceaccount:NS:NAME".
std::optional<std::pair<std::string, std::string>> ServiceAccountOf(std::string_view name) {
  if (name.substr(0, kUserServiceAccountPrefix.size()) != kUserServiceAccountPrefix) return std::nullopt;
  name.remove_prefix(kUserServiceAccountPrefix.size());
  auto colon = name.find(':');
  if (colon == std::string_view::npos || name.find(':', colon + 1) != std::string_view::npos)
    return std::nullopt;
  return std::pair(std::string(name.substr(0, colon)), std::string(name.substr(colon + 1)));
}

std::string LowerDecoded(std::string_view text) {
  std::string out = http::PercentDecode(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace

Result<User> Impersonate(const User& user, const http::Headers& headers, const Authorizer& authorizer) {
  User out;
  out.name = headers.Get("Impersonate-User");
  out.uid = headers.Get("Impersonate-Uid");
  for (std::string_view group : headers.All("Impersonate-Group")) out.groups.emplace_back(group);
  for (const auto& header : headers) {
    std::string_view name = header.first;
    if (name.size() <= kExtraPrefix.size() ||
        !http::EqualsIgnoreCase(name.substr(0, kExtraPrefix.size()), kExtraPrefix)) {
      continue;
    }
    out.extra[LowerDecoded(name.substr(kExtraPrefix.size()))].push_back(header.second);
  }
  if (out.name.empty()) {
    if (out.uid.empty() && out.groups.empty() && out.extra.empty()) return user;
    return Error(Code::kInternal,
                 "Internal error occurred: requested impersonation without impersonating a user");
  }

  RequestInfo request;
  if (auto account = ServiceAccountOf(out.name)) {
    request.resource = "serviceaccounts";
    request.ns = account->first;
    request.name = account->second;
  } else {
    request.resource = "users";
    request.name = out.name;
  }
  RETURN_IF_ERROR(Check(user, authorizer, request));
  request = {};
  request.resource = "groups";
  for (const std::string& group : out.groups) {
    request.name = group;
    RETURN_IF_ERROR(Check(user, authorizer, request));
  }
  request = {};
  request.group = "authentication.k8s.io";
  request.version = "v1";
  if (!out.uid.empty()) {
    request.resource = "uids";
    request.name = out.uid;
    RETURN_IF_ERROR(Check(user, authorizer, request));
  }
  request.resource = "userextras";
  for (const auto& extra : out.extra) {
    request.subresource = extra.first;
    for (const std::string& value : extra.second) {
      request.name = value;
      RETURN_IF_ERROR(Check(user, authorizer, request));
    }
  }

  if (auto account = ServiceAccountOf(out.name); account && out.groups.empty()) {
    out.groups = {std::string(kGroupServiceAccounts),
                  std::string(kGroupServiceAccounts) + ":" + account->first};
  }
  if (!out.InGroup(kGroupAuthenticated) && !out.InGroup(kGroupUnauthenticated)) {
    bool anonymous = out.name == kUserAnonymous;
    out.groups.emplace_back(anonymous ? kGroupUnauthenticated : kGroupAuthenticated);
  }
  return out;
}

}  // namespace keelson::apiserver
