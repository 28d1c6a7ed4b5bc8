// HTTP client: HTTP/1.1, and HTTP/2 where ALPN selects it. Keeps and shares connections. Thread safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "lib/crypto/tls.h"
#include "lib/http/body_stream.h"
#include "lib/http/message.h"
#include "lib/http/stream.h"

namespace keelson::http {

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";  // path and query, encoded
  Headers headers;           // Host is added automatically
  std::string body;
  // Instead of `body`, when it is not known as a whole yet. With a Content-Length header it must have that length.
  // A request whose stream has been read from is not sent again.
  std::shared_ptr<BodyStream> body_stream;
  size_t max_response_body = SIZE_MAX;  // of a whole response; a longer one is kTooLarge
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

// A response whose body arrives piece by piece.
class ResponseReader {
 public:
  virtual ~ResponseReader() = default;
  virtual int status() const = 0;
  virtual const Headers& headers() const = 0;
  // Blocks for the next piece; empty at the end. kTimeout after `idle` without a byte (max(): never),
  // kCancelled on `stop`.
  virtual Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle) = 0;
  // Calls `readable` when bytes, the end or a failure have come since the last Read(): from any thread, perhaps from
  // within this call, and perhaps once more than there is to read. It must not block; it may outlive the reader.
  virtual void OnReadable(std::function<void()> readable) = 0;
};

// Receives a response that Client::Send() has asked for. Calls come in order, on an I/O thread, and must not
// block. Exactly one of OnEnd, OnUpgraded and OnFail comes last, or none after ClientCall::Cancel().
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual void OnHead(int status, const Headers& headers) = 0;
  // Returns true when the sink is behind: bytes then stop soon, until ClientCall::Resume().
  virtual bool OnBody(std::string_view bytes) = 0;
  virtual void OnEnd() = 0;
  // After OnHead() with 101, which only a request for an upgrade gets.
  virtual void OnUpgraded(std::unique_ptr<Stream> stream) = 0;
  // kUnavailable: no connection, or it broke; kTimeout. Also after a part of the response.
  virtual void OnFail(const Error& error) = 0;
};

// A request under way. Thread safe. Dropping it does not end the request.
class ClientCall {
 public:
  virtual ~ClientCall() = default;
  virtual void Resume() = 0;
  virtual void Cancel() = 0;
};

// A request that is under way; destroying it gives the request up.
class PendingResponse {
 public:
  virtual ~PendingResponse() = default;
  // Blocks for the whole response, at most `timeout` from now. Call it once. Errors as of Client::Do().
  virtual Result<ClientResponse> Await(std::chrono::milliseconds timeout, std::stop_token stop = {}) = 0;
};

struct ClientOptions {
  std::string base_url;  // https://host:port, http://host:port, unix:///path (plain HTTP)
  crypto::TlsClientOptions tls;
  bool http2 = true;
  std::chrono::milliseconds connect_timeout{10000};
};

class Client {
 public:
  static Result<std::unique_ptr<Client>> Create(ClientOptions options);
  virtual ~Client() = default;

  // Sends the request and returns the whole response, whatever its status. Retries on a new connection if
  // the server had closed a kept one. kUnavailable: no connection; kTimeout; kCancelled.
  virtual Result<ClientResponse> Do(const ClientRequest& request, std::chrono::milliseconds timeout,
                                    std::stop_token stop = {}) = 0;
  // Sends the request without waiting, so that one thread can have several under way. The client must
  // outlive the result.
  virtual std::unique_ptr<PendingResponse> Start(const ClientRequest& request) = 0;
  // Like Do(), but returns once the head has arrived (within `timeout`); the caller reads the body.
  virtual Result<std::unique_ptr<ResponseReader>> Open(const ClientRequest& request,
                                                       std::chrono::milliseconds timeout,
                                                       std::stop_token stop = {}) = 0;
  // Sends an HTTP/1.1 request with Connection: Upgrade on a connection of its own. A status other than 101
  // is an error with the code of that status and the body as message; `refusal`, if given, gets the whole
  // response.
  struct Upgraded {
    Headers headers;  // of the 101
    std::unique_ptr<Stream> stream;
  };
  virtual Result<Upgraded> Upgrade(const ClientRequest& request, std::chrono::milliseconds timeout,
                                   std::stop_token stop = {}, ClientResponse* refusal = nullptr) = 0;

  // Sends the request and returns at once; `sink`, which is kept until the end, gets the response. The whole
  // response must arrive within `timeout` (max(): no limit). With `upgrade`, the request asks for a change of
  // protocol, as in Upgrade(). The client must outlive the response: destroying it fails the request.
  virtual std::shared_ptr<ClientCall> Send(ClientRequest request, bool upgrade,
                                           std::chrono::milliseconds timeout,
                                           std::shared_ptr<ResponseSink> sink) = 0;
};

}  // namespace keelson::http
