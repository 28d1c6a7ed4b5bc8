// From a request to a User: client certificate, then bearer token (static file, ServiceAccount JWT), else
// anonymous.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "controlplane/apiserver/authn/token.h"
#include "controlplane/apiserver/user.h"
#include "lib/http/server.h"

namespace keelson::apiserver {

class Authenticator {  // thread safe
 public:
  // Lines of `token,user,uid[,"group1,group2"]`.
  static Result<std::map<std::string, User, std::less<>>> ParseTokenFile(std::string_view text);

  Authenticator(std::map<std::string, User, std::less<>> static_tokens,
                std::shared_ptr<TokenAuthenticator> tokens);

  // kUnauthenticated ("Unauthorized") when credentials were given and are not good.
  Result<User> Authenticate(const http::ServerRequest& request) const;
  // For TokenReview: an error's message says why; `audiences` empty: this server's.
  Result<TokenAuthenticator::Answer> AuthenticateToken(std::string_view token,
                                                       const std::vector<std::string>& audiences) const;

 private:
  const std::map<std::string, User, std::less<>> static_tokens_;
  const std::shared_ptr<TokenAuthenticator> tokens_;  // may be null
};

}  // namespace keelson::apiserver
