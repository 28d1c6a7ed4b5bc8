// Who asks, and whether they may. Thread safe; answers of the API server are kept for a while.
#pragma once

#include <string>
#include <vector>

#include "kubelet/server/server.h"
#include "lib/base/clock.h"
#include "lib/client/delegated_auth.h"

namespace keelson::kubelet::server {

using User = client::ReviewedUser;

// The verb of the API for a method, and the subresources of nodes of which any one will do, the narrowest
// first: /pods may be read with nodes/pods or nodes/proxy.
struct Access {
  std::string verb;
  std::vector<std::string> subresources;
};
Access AccessOf(const http::ServerRequest& request);

class Auth {
 public:
  Auth(const KubeletServerOptions& options, client::RestClient api, Clock& clock = Clock::Real());
  // kUnauthenticated without valid credentials.
  Result<User> Authenticate(const http::ServerRequest& request);
  // kForbidden; kInternal when the API server cannot be asked.
  Result<> Authorize(const User& user, const Access& access);

 private:
  Result<bool> Allowed(const User& user, const std::string& verb, const std::string& subresource);

  const KubeletServerOptions options_;
  Clock& clock_;
  client::DelegatedAuth reviews_;
};

}  // namespace keelson::kubelet::server
