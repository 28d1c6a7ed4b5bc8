// A response that is sent as WebSocket messages: what writes a stream to a ResponseWriter can write it to a
// client that asked for an upgrade.
#pragma once

#include <memory>

#include "lib/http/server.h"

namespace keelson::http {

// The request is a WebSocket handshake (it may still be a bad one).
bool WantsWebSocket(const ServerRequest& request);

// Until Start() replies go out as plain HTTP. Start() answers the handshake, and its status and headers are
// dropped; each Write() is then one message, and Finish() a close frame. Of the client's messages only pings
// and the close are heeded. The first subprotocol that carries no token is the one agreed upon.
// kBadRequest: not a proper handshake.
Result<std::shared_ptr<ResponseWriter>> NewWebSocketWriter(const ServerRequest& request,
                                                           std::shared_ptr<ResponseWriter> writer, bool text);

}  // namespace keelson::http
