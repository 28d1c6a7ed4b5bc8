// Impersonate-User and its companions: acting as somebody else, as far as the authorizers let one.
//
// There are five ways, tried in this order; the first that is allowed decides (kep.k8s.io/5284):
//
//   associated-node   a service account as the node that its own token names
//   arbitrary-node    any node
//   serviceaccount    a service account
//   user-info         anybody else
//   (the old way)     anybody, with the verb "impersonate" alone
//
// Each but the last asks for two rights: "impersonate:MODE" on the identity, and "impersonate-on:MODE:VERB"
// on what the request is about. So one may be let act as another for some purposes only.
#pragma once

#include <optional>
#include <string>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/http/message.h"

namespace keelson::apiserver {

struct Impersonation {
  User user;
  std::string constraint;  // "impersonate:user-info"; empty for the old way
};

// Whom to go on as; nullopt when no header asks for another. kForbidden, in the words of the first way that
// was not allowed; kBadRequest.
Result<std::optional<Impersonation>> Impersonate(const User& requestor, const http::Headers& headers,
                                                 const RequestInfo& request, const Authorizer& authorizer);

}  // namespace keelson::apiserver
