// exec and attach: a WebSocket client on one side, a SPDY/3.1 streaming server on the other. Internal to
// lib/http.
//
//   WebSocket channel   0 stdin  1 stdout  2 stderr  3 error  4 resize  255 close (v5)
//   SPDY header         streamtype: stdin, stdout, stderr, error, resize
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/http/server.h"
#include "lib/http/stream.h"
#include "lib/http/streaming.h"

namespace keelson::http {

struct ChannelProtocol {
  std::string name;     // the subprotocol
  bool close = false;   // v5: channel 255 half-closes a stream
  bool base64 = false;  // messages are text
};

// The one to use of what the client offers; nullopt: none is known.
std::optional<ChannelProtocol> ChooseChannelProtocol(const std::vector<std::string>& offered);

void RelayRemoteCommand(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
                        const ChannelProtocol& protocol, const RemoteCommandStreams& streams);

// Port-forward: SPDY frames inside binary WebSocket messages on one side, plain SPDY on the other.
void RelayTunnel(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server);

}  // namespace keelson::http
