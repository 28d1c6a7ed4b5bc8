// Authentication and authorization of the kubelet's API by TokenReview and SubjectAccessReview, with cached answers.
#pragma once

#include <string>
#include <vector>

#include "kubelet/server/server.h"
#include "lib/base/clock.h"
#include "lib/client/delegated_auth.h"

namespace keelson::kubelet::server {

using User = client::ReviewedUser;

// What a request needs: the verb, and the subresources of nodes, any one of which suffices, the narrowest first:
// /pods may be read with nodes/pods or nodes/proxy.
struct Access {
  std::string verb;
  std::vector<std::string> subresources;
};
Access AccessOf(const http::ServerRequest& request);

class Auth {  // thread safe; calls may block on the API server
 public:
  Auth(const KubeletServerOptions& options, client::RestClient api, Clock& clock = Clock::Real());
  // kUnauthenticated: no valid credentials.
  Result<User> Authenticate(const http::ServerRequest& request);
  // kForbidden; kInternal: the API server cannot be asked.
  Result<> Authorize(const User& user, const Access& access);

 private:
  Result<bool> Allowed(const User& user, const std::string& verb, const std::string& subresource);

  const KubeletServerOptions options_;
  Clock& clock_;
  client::DelegatedAuth reviews_;
};

}  // namespace keelson::kubelet::server
