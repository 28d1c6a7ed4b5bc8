// A response as WebSocket messages: code that writes a stream to a ResponseWriter can serve a client that
// asked for an upgrade.
#pragma once

#include <memory>

#include "lib/http/server/server.h"

namespace keelson::http {

// Whether the request is a WebSocket handshake (possibly an invalid one).
bool WantsWebSocket(const ServerRequest& request);

// Before Start(), replies go out as plain HTTP. Start() completes the handshake and drops its status and
// headers; each Write() is then one message, and Finish() a close frame. The client's messages are ignored,
// except for pings and close. kBadRequest: an invalid handshake, or no known subprotocol.

// One message per event, as text or bytes. Uses the first subprotocol of the offer.
Result<std::shared_ptr<ResponseWriter>> NewWebSocketWriter(const ServerRequest& request,
                                                           std::shared_ptr<ResponseWriter> writer, bool text);
// A byte stream cut at any point: subprotocols binary.k8s.io (or none) and base64.binary.k8s.io, whose
// messages are text. An empty message comes first, so that clients know that the stream is connected.
Result<std::shared_ptr<ResponseWriter>> NewWebSocketByteWriter(const ServerRequest& request,
                                                               std::shared_ptr<ResponseWriter> writer);

}  // namespace keelson::http
