// Authentication by a proxy, which passes the user in headers and has a client certificate of
// --requestheader-client-ca-file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controlplane/apiserver/request/user.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

struct RequestHeaderOptions {
  std::string client_ca_file;              // empty: disabled
  std::vector<std::string> allowed_names;  // allowed common names; empty: any
  std::vector<std::string> username_headers, uid_headers, group_headers, extra_prefixes;
};

// Nullopt when the client is not a proxy, or the user name is missing.
std::optional<User> UserOfProxy(const RequestHeaderOptions& options, const http::ServerRequest& request);

}  // namespace keelson::apiserver
