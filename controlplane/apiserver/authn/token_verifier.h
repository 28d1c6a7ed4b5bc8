// One way to find out whom a bearer token speaks for.
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
  std::vector<std::string> audiences;  // those asked for that the token is meant for
};

class TokenVerifier {  // thread safe
 public:
  virtual ~TokenVerifier() = default;
  // `audiences` is never empty. nullopt: not a token of this kind, others may know it. An error
  // (kUnauthenticated) says why one of this kind is not good; it holds no part of the token.
  virtual Result<std::optional<TokenAnswer>> Authenticate(std::string_view token,
                                                          const std::vector<std::string>& audiences) = 0;
};

// For tokens that say nothing of audiences: they are meant for this server.
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
