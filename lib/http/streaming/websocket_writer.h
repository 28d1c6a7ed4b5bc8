// A response that is sent as WebSocket messages: what writes a stream to a ResponseWriter can write it to a
// client that asked for an upgrade.
#pragma once

#include <memory>

#include "lib/http/server/server.h"

namespace keelson::http {

// The request is a WebSocket handshake (it may still be a bad one).
bool WantsWebSocket(const ServerRequest& request);

// Until Start() replies go out as plain HTTP. Start() answers the handshake, and its status and headers are
// dropped; each Write() is then one message, and Finish() a close frame. Of the client's messages only pings
// and the close are heeded. kBadRequest: not a proper handshake, or no subprotocol that is known.

// A message an event, as text or as bytes. The first subprotocol is the one agreed upon.
Result<std::shared_ptr<ResponseWriter>> NewWebSocketWriter(const ServerRequest& request,
                                                           std::shared_ptr<ResponseWriter> writer, bool text);
// A stream of bytes cut anywhere: subprotocols binary.k8s.io (or none) and base64.binary.k8s.io, whose
// messages are text. An empty message comes first, so that clients know that all is connected.
Result<std::shared_ptr<ResponseWriter>> NewWebSocketByteWriter(const ServerRequest& request,
                                                               std::shared_ptr<ResponseWriter> writer);

}  // namespace keelson::http
