// exec, attach and port-forward: connects a client's upgraded connection to a server that speaks an older
// or another protocol of the same family.
//
// Clients use WebSocket (subprotocols v5.channel.k8s.io down to channel.k8s.io and their base64 forms; for
// port-forward v4.channel.k8s.io or "SPDY/3.1+portforward.k8s.io", which tunnels SPDY frames) or SPDY/3.1
// (X-Stream-Protocol-Version: v4.channel.k8s.io, portforward.k8s.io).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/http/client/client.h"
#include "lib/http/server/server.h"

namespace keelson::http {

bool IsUpgradeRequest(const ServerRequest& request);

// The streams of an exec or attach request: stdin, stdout, stderr, tty as the API server names them, or
// input, output, error, tty as the kubelet does. A terminal has no stderr.
struct RemoteCommandStreams {
  bool in = false, out = false, err = false, tty = false;
};
Result<RemoteCommandStreams> ParseRemoteCommand(const Query& query);  // kBadRequest: none at all

// Passes the client's upgrade request on to `upstream` at `target` and splices the two connections. Used
// where both sides speak the same protocols (API server to kubelet). Adds the headers in `extra` (such as
// Authorization) and drops the client's own Authorization. Passes a response other than 101 back. Blocks
// until the response to the upgrade, not for the life of the stream.
void ProxyUpgrade(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, Client& upstream,
                  const std::string& target, const Headers& extra);

enum class StreamingKind { kRemoteCommand, kPortForward };

// Serves the client's request from a CRI streaming URL (http://127.0.0.1:port/exec/TOKEN), over SPDY/3.1.
// SPDY clients are spliced; WebSocket clients are translated stream by stream, including v5's CLOSE
// (half-closed stdin) and the Status on v4's error channel. Blocks like ProxyUpgrade().
void ServeStreaming(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, StreamingKind kind,
                    const std::string& url);
// Like the above, from any server that speaks SPDY/3.1, such as a kubelet without WebSocket.
void ServeStreaming(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, StreamingKind kind,
                    Client& upstream, const std::string& target, const Headers& extra);

}  // namespace keelson::http
