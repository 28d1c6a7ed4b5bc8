// The user of a request.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::apiserver {

inline constexpr std::string_view kGroupMasters = "system:masters";
inline constexpr std::string_view kGroupNodes = "system:nodes";
inline constexpr std::string_view kGroupAuthenticated = "system:authenticated";
inline constexpr std::string_view kGroupUnauthenticated = "system:unauthenticated";
inline constexpr std::string_view kGroupServiceAccounts = "system:serviceaccounts";
inline constexpr std::string_view kUserAnonymous = "system:anonymous";
inline constexpr std::string_view kUserApiServer = "system:apiserver";
inline constexpr std::string_view kUserNodePrefix = "system:node:";
inline constexpr std::string_view kUserServiceAccountPrefix = "system:serviceaccount:";

struct User {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  bool InGroup(std::string_view group) const {
    for (const std::string& one : groups) {
      if (one == group) return true;
    }
    return false;
  }
};

inline User AnonymousUser() {
  return {std::string(kUserAnonymous), "", {std::string(kGroupUnauthenticated)}, {}};
}

// The server's own identity with all permissions, for bootstrap and built-in controllers.
inline User ApiServerUser() {
  return {
      std::string(kUserApiServer), "", {std::string(kGroupMasters), std::string(kGroupAuthenticated)}, {}};
}

}  // namespace keelson::apiserver
