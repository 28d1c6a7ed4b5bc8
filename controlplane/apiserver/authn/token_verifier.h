// The interface of bearer token authenticators.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/request/user.h"
#include "lib/base/error.h"

namespace keelson::apiserver {

struct TokenAnswer {
  User user;
  std::vector<std::string> audiences;  // the requested audiences that the token has
};

class TokenVerifier {  // thread safe
 public:
  virtual ~TokenVerifier() = default;
  // `audiences` is not empty. Returns nullopt for a token of another kind. kUnauthenticated states why the
  // token is invalid; the message contains no part of the token.
  virtual Result<std::optional<TokenAnswer>> Authenticate(std::string_view token,
                                                          const std::vector<std::string>& audiences) = 0;
};

// Audiences in both lists. For tokens without audiences, `have` is the server's audiences.
inline std::vector<std::string> Intersect(const std::vector<std::string>& wanted,
                                          const std::vector<std::string>& have) {
  std::vector<std::string> out;
  for (const std::string& one : wanted) {
    for (const std::string& other : have) {
      if (one != other) continue;
      out.push_back(one);
      break;
    }
  }
  return out;
}

}  // namespace keelson::apiserver
