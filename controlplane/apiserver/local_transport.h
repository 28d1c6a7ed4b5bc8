// API requests inside the process: calls the handlers directly, without a socket.
#pragma once

#include <memory>

#include "lib/client/transport.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

// `handler` runs on the caller's thread and must outlive the transport and its streams. `user_agent`: the
// User-Agent of the requests; the part before the first / is the field manager.
std::shared_ptr<client::Transport> NewLocalTransport(http::Handler handler, std::string user_agent = "");

}  // namespace keelson::apiserver
