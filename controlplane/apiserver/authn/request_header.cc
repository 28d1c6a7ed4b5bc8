#include "controlplane/apiserver/authn/request_header.h"

#include <algorithm>

#include "lib/base/percent.h"
#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

std::string_view FirstOf(const http::Headers& headers, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::string_view value = headers.Get(name); !value.empty()) return value;
  }
  return "";
}

}  // namespace

std::optional<User> UserOfProxy(const RequestHeaderOptions& options, const http::ServerRequest& request) {
  if (options.client_ca_file.empty() || !request.peer || !request.peer->from_proxy_ca) return std::nullopt;
  const std::vector<std::string>& allowed = options.allowed_names;
  if (!allowed.empty() &&
      std::find(allowed.begin(), allowed.end(), request.peer->common_name) == allowed.end()) {
    return std::nullopt;
  }
  User user;
  user.name = FirstOf(request.headers, options.username_headers);
  if (user.name.empty()) return std::nullopt;
  user.uid = FirstOf(request.headers, options.uid_headers);
  for (const std::string& name : options.group_headers) {
    for (std::string_view group : request.headers.All(name)) {
      if (!group.empty()) user.groups.emplace_back(group);
    }
  }
  for (const auto& header : request.headers) {
    for (const std::string& prefix : options.extra_prefixes) {
      std::string_view name = header.first;
      if (name.size() <= prefix.size() || !EqualsIgnoreCase(name.substr(0, prefix.size()), prefix)) continue;
      user.extra[PercentDecode(Lower(name.substr(prefix.size())))].push_back(header.second);
    }
  }
  return user;
}

}  // namespace keelson::apiserver
