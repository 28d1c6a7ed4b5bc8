// Who asks, and whether they may. Thread safe; answers of the API server are kept for a while.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kubelet/server/server.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::server {

struct User {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

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
  struct KnownUser {
    User user;
    bool authenticated;
    SteadyTime until;
  };
  struct Decision {
    bool allowed;
    SteadyTime until;
  };
  Result<User> Review(const std::string& token);
  Result<bool> Allowed(const User& user, const std::string& verb, const std::string& subresource);

  const KubeletServerOptions options_;
  const client::RestClient api_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, KnownUser> tokens_ GUARDED_BY(mutex_);
  std::map<std::string, Decision> decisions_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet::server
