// Impersonate-User and related headers.
//
// There are five modes, tried in this order; the first that is allowed decides (KEP-5284):
//
//   associated-node   a service account impersonates the node that its own token names
//   arbitrary-node    any node
//   serviceaccount    a service account
//   user-info         any other user
//   (legacy)          any user, with the verb "impersonate" alone
//
// The modes except the last need two permissions: "impersonate:MODE" on the identity, and
// "impersonate-on:MODE:VERB" on the resource of the request. So impersonation can be limited to some requests.
#pragma once

#include <optional>
#include <string>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/http/message.h"

namespace keelson::apiserver {

struct Impersonation {
  User user;
  std::string constraint;  // "impersonate:user-info"; empty for the legacy mode
};

// Returns the impersonated user; nullopt without impersonation headers. kForbidden with the message of the
// first mode that was denied; kBadRequest for invalid headers.
Result<std::optional<Impersonation>> Impersonate(const User& requestor, const http::Headers& headers,
                                                 const RequestInfo& request, const Authorizer& authorizer);

}  // namespace keelson::apiserver
