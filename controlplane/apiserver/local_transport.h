// API requests from inside the process: straight into the handlers, without a socket.
#pragma once

#include <memory>

#include "lib/client/transport.h"
#include "lib/http/server.h"

namespace keelson::apiserver {

// `handler` runs on the caller's thread. It must outlive the transport and its streams.
std::shared_ptr<client::Transport> NewLocalTransport(http::Handler handler);

}  // namespace keelson::apiserver
