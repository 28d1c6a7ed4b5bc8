// HTTP server over TLS (or plain, for tests and health checks on loopback): HTTP/1.1, HTTP/2 by ALPN,
// upgrades.
//
// Sockets live on `io_threads` Asio threads that never block; handlers run on a pool of `worker_threads`
// and may block. A response that continues after its handler has returned (a watch, a followed log) holds
// no thread: any thread with the ResponseWriter writes when there is data.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/crypto/tls.h"
#include "lib/http/body_stream.h"
#include "lib/http/message.h"
#include "lib/http/stream.h"

namespace keelson::http {

struct ServerRequest {
  std::string method;
  std::string path;       // decoded, without the query
  std::string raw_path;   // as sent, without the query
  std::string raw_query;  // without '?'
  Query query;
  Headers headers;  // HTTP/2: :authority appears as Host
  std::string body;
  // Set for a long body that ServerOptions::streams_body asked for; `body` is then empty. It goes on only as long as the
  // response is not complete.
  std::shared_ptr<BodyStream> body_stream;
  int http_major = 1;
  std::string remote_address;                   // "10.0.0.1:4711"
  std::optional<crypto::PeerCertificate> peer;  // a client certificate that was verified
  bool peer_refused = false;                    // the client showed a certificate that is not trusted
};

// Thread safe. Destroying the last reference without Finish() cuts the connection (HTTP/2: resets the
// stream).
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // Sends a complete response. Sets Content-Length; drops the body for HEAD.
  virtual void Reply(int status, Headers headers, std::string body) = 0;
  // Like Reply(), without copying: sends the pieces in order.
  virtual void ReplyShared(int status, Headers headers,
                           std::vector<std::shared_ptr<const std::string>> body) = 0;

  // Starts a response of unknown length (chunked, or HTTP/2 DATA): Start(), any number of Write(),
  // Finish().
  virtual void Start(int status, Headers headers) = 0;
  // Queues data and returns at once; false when the client is gone. Never blocks: an endless writer checks
  // queued_bytes() and gives up on clients that do not read.
  virtual bool Write(std::shared_ptr<const std::string> data) = 0;
  virtual void Finish() = 0;
  virtual size_t queued_bytes() const = 0;

  // Runs `callback` once, when the response is complete or the client has gone (at once if that has already
  // happened). It must not block.
  virtual void OnClose(std::function<void()> callback) = 0;
  virtual bool closed() const = 0;

  // Ends HTTP on this connection: sends 101 with `headers` (the caller sets Connection and Upgrade) and
  // returns the byte stream. HTTP/1.1 only: kBadRequest otherwise.
  virtual Result<std::unique_ptr<Stream>> Upgrade(Headers headers) = 0;
};

using Handler = std::function<void(std::shared_ptr<const ServerRequest>, std::shared_ptr<ResponseWriter>)>;

struct ServerOptions {
  std::string address = "127.0.0.1";  // IPv4 or IPv6 literal
  uint16_t port = 0;                  // 0: the kernel chooses, see Server::port()
  std::optional<crypto::TlsServerOptions> tls;
  int io_threads = 1;
  int worker_threads = 8;
  size_t max_body = 3u << 20;  // larger bodies get 413
  // Whether the handler of this request, which has all but a body, takes long bodies as a stream, while they arrive and
  // however long they are. Runs on an I/O thread and must not block; may be empty: no handler does.
  std::function<bool(const ServerRequest&)> streams_body;
  std::chrono::seconds header_timeout{32};
  std::function<void()> on_handshake_error;  // after a failed TLS handshake; must not block; may be empty
  std::chrono::seconds idle_timeout{180};
  // ---- HTTP/2 ----
  uint32_t max_streams = 500;  // concurrent, per connection
  // The probability, per request, of telling the client to reconnect, so that it may reach another server
  // behind a load balancer. Running requests continue.
  double goaway_chance = 0;
  bool reuse_port = false;  // several servers may listen on one address (SO_REUSEPORT)
};

class Server {
 public:
  // Binds and listens. Serves only once Run() is called.
  static Result<std::unique_ptr<Server>> Listen(ServerOptions options, Handler handler);
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;
  // Serves until `stop`. Then stops accepting, gives running requests `grace` to end, and closes the rest.
  virtual Result<> Run(std::stop_token stop, std::chrono::milliseconds grace = std::chrono::seconds(2)) = 0;
  // Reads the certificate files again, for new connections. On an error the old certificates stay.
  virtual Result<> ReloadTls() = 0;
};

}  // namespace keelson::http
