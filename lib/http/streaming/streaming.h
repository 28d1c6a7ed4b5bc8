// exec, attach and port-forward: proxying a client's upgraded connection to a server that speaks an
// older or other protocol of the same family.
//
// Clients come with WebSocket (subprotocols v5.channel.k8s.io down to channel.k8s.io and their base64 forms;
// for port-forward v4.channel.k8s.io or "SPDY/3.1+portforward.k8s.io", which tunnels SPDY frames) or with
// SPDY/3.1 (X-Stream-Protocol-Version: v4.channel.k8s.io, portforward.k8s.io).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/http/client/client.h"
#include "lib/http/server/server.h"

namespace keelson::http {

bool IsUpgradeRequest(const ServerRequest& request);

// Which streams an exec or attach request asks for: stdin, stdout, stderr, tty as the API server names them,
// or input, output, error, tty as the kubelet does. With a terminal there is no stderr.
struct RemoteCommandStreams {
  bool in = false, out = false, err = false, tty = false;
};
Result<RemoteCommandStreams> ParseRemoteCommand(const Query& query);  // kBadRequest: none at all

// Passes the client's own upgrade request on to `upstream` at `target` unchanged (plus `extra`, e.g. an
// Authorization header; the client's own Authorization is dropped) and splices the two connections. An
// answer other than 101 is passed back. Used where both sides speak the same protocols (API server to
// kubelet). Blocks until the upgrade is answered, not for the stream's life.
void ProxyUpgrade(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, Client& upstream,
                  const std::string& target, const Headers& extra);

enum class StreamingKind { kRemoteCommand, kPortForward };

// Serves the client's request from a CRI streaming URL (http://127.0.0.1:port/exec/TOKEN), which is spoken
// to in SPDY/3.1: SPDY clients are spliced, WebSocket clients are translated stream by stream, including
// v5's CLOSE (half-closed stdin) and the v4 error channel's Status. Threads: as ProxyUpgrade.
void ServeStreaming(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, StreamingKind kind,
                    const std::string& url);
// The same from any server that speaks SPDY/3.1, e.g. a kubelet that knows no WebSocket.
void ServeStreaming(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, StreamingKind kind,
                    Client& upstream, const std::string& target, const Headers& extra);

}  // namespace keelson::http
