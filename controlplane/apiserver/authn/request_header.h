// An authenticating proxy in front of this server: it names the user in headers, and shows a certificate of
// --requestheader-client-ca-file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controlplane/apiserver/request/user.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

struct RequestHeaderOptions {
  std::string client_ca_file;              // empty: nobody is a proxy
  std::vector<std::string> allowed_names;  // common names; empty: any
  std::vector<std::string> username_headers, uid_headers, group_headers, extra_prefixes;
};

// nullopt: no proxy, or it names nobody.
std::optional<User> UserOfProxy(const RequestHeaderOptions& options, const http::ServerRequest& request);

}  // namespace keelson::apiserver
