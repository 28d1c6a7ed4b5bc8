// The address that a client connects to, and connecting. Internal to lib/http/client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "lib/base/error.h"
#include "lib/http/channel.h"

namespace keelson::http {

struct Endpoint {
  bool tls = false;
  std::string host;  // name or IP literal without brackets
  std::string port;
  std::string unix_path;  // for unix sockets; host and port are then empty
  std::string authority;  // the Host header
};

// Parses ClientOptions::base_url. kBadRequest when it is malformed.
Result<Endpoint> ParseBaseUrl(const std::string& url);

struct ServerConnection {
  std::shared_ptr<Channel> channel;
  bool one_of_several;  // there is another server to turn to
};

// Resolves, connects and, with a `context`, shakes hands. A name may have the addresses of several servers: the first that
// answers is taken, and a connection that dies silently is given up within three seconds, within two when something was sent. Runs on
// `loop`; `done` too, exactly once.
void Connect(std::shared_ptr<event::Loop> loop, const Endpoint& endpoint,
             std::shared_ptr<const crypto::TlsContext> context, const crypto::TlsClientOptions& tls,
             std::chrono::milliseconds timeout, std::function<void(Result<ServerConnection>)> done);

}  // namespace keelson::http
