// Impersonate-User and its companions: acting as somebody else, if RBAC lets one.
#pragma once

#include <optional>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/http/message.h"

namespace keelson::apiserver {

// The user to go on as; `user` itself when no header asks for another. kForbidden.
Result<User> Impersonate(const User& user, const http::Headers& headers, const Authorizer& authorizer);

}  // namespace keelson::apiserver
