// exec, attach and port-forward: a WebSocket client on one side, a SPDY/3.1 streaming server on the other.
// Internal to lib/http.
//
//   WebSocket channel   0 stdin  1 stdout  2 stderr  3 error  4 resize  255 close (v5)
//   SPDY header         streamtype: stdin, stdout, stderr, error, resize
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/http/server/server.h"
#include "lib/http/stream.h"
#include "lib/http/streaming/channels.h"
#include "lib/http/streaming/streaming.h"

namespace keelson::http {

void RelayRemoteCommand(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
                        const ChannelProtocol& protocol, const RemoteCommandStreams& streams);

// Port-forward of the ports that the request names: port i has the channels 2i for its data and 2i+1 for its
// errors, and the first message of each is the port's number, two bytes, the lower one first.
void RelayPorts(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
                const ChannelProtocol& protocol, const std::vector<uint16_t>& ports);

// Port-forward: SPDY frames inside binary WebSocket messages on one side, plain SPDY on the other.
void RelayTunnel(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server);

}  // namespace keelson::http
