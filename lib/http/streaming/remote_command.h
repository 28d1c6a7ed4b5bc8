// exec, attach and port-forward: a WebSocket client on one side, a SPDY/3.1 streaming server on the other.
// Internal to lib/http/streaming.
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

// Forwards the ports named in the request. Port i has channel 2i for data and 2i+1 for errors; the first
// message on each is the port number, two bytes, little-endian.
void RelayPorts(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server,
                const ChannelProtocol& protocol, const std::vector<uint16_t>& ports);

// Port-forward: SPDY frames inside binary WebSocket messages on one side, plain SPDY on the other.
void RelayTunnel(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server);

}  // namespace keelson::http
