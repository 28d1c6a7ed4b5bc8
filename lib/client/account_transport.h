// Requests as a ServiceAccount, with tokens that another client requests: each component has the rights of
// its own role, as with --use-service-account-credentials.
#pragma once

#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/client/rest.h"
#include "lib/client/transport.h"

namespace keelson::client {

// `config` locates the server; its credentials are ignored. `asker` needs permission to create the
// account's tokens, and the account itself if it is missing. The transport requests a token on first use,
// and a new one after four fifths of its lifetime or when the server rejects it.
std::shared_ptr<Transport> NewAccountTransport(RestConfig config, RestClient asker, std::string ns,
                                               std::string account, Clock& clock = Clock::Real());

}  // namespace keelson::client
