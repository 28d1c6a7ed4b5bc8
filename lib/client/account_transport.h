// Requests as a ServiceAccount, on behalf of which another client asks for tokens: each program part with the
// rights of its own role, as --use-service-account-credentials has it.
#pragma once

#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/client/rest.h"
#include "lib/client/transport.h"

namespace keelson::client {

// `config` says where the server is; who is shown by it is left out. `asker` may create ServiceAccounts (one
// that is not there is made) and their tokens. A token is taken on first use, and a new one after four fifths
// of its life, or when the server refuses it.
std::shared_ptr<Transport> NewAccountTransport(RestConfig config, RestClient asker, std::string ns,
                                               std::string account, Clock& clock = Clock::Real());

}  // namespace keelson::client
