// API requests from inside the process: straight into the handlers, without a socket.
#pragma once

#include <memory>

#include "lib/client/transport.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

// `handler` runs on the caller's thread. It must outlive the transport and its streams. `user_agent` is what
// the requests say of themselves: the part before the first / manages the fields that they write.
std::shared_ptr<client::Transport> NewLocalTransport(http::Handler handler, std::string user_agent = "");

}  // namespace keelson::apiserver
