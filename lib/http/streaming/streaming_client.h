// The client's side of a CRI streaming URL (http://127.0.0.1:port/exec/TOKEN), over SPDY/3.1: what crictl and
// kubectl do. Calls block.
//
// Source: k8s.io/client-go/tools/remotecommand (v4.channel.k8s.io) and tools/portforward (portforward.k8s.io).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/crypto/tls.h"
#include "lib/http/streaming/streaming.h"

namespace keelson::http {

struct StreamingTarget {
  std::string url;
  crypto::TlsClientOptions tls;              // for https
  std::chrono::milliseconds timeout{30000};  // to connect and upgrade
};

// A command in a container. One thread calls Run(); others may send meanwhile.
class RemoteCommandClient {
 public:
  // Connects, and opens the streams. kUnavailable: no connection; else the server's refusal.
  static Result<std::unique_ptr<RemoteCommandClient>> Connect(const StreamingTarget& target,
                                                              const RemoteCommandStreams& streams);
  virtual ~RemoteCommandClient() = default;

  // Passes output to `on_output` until the command ends, and returns its exit code. kCancelled after Stop();
  // kUnavailable: the connection broke; kInternal: the server's failure.
  virtual Result<int> Run(const std::function<void(bool is_stderr, std::string_view bytes)>& on_output) = 0;

  // These wait until the server has taken the streams, and until the bytes are written. An error means that the
  // command is over.
  virtual Result<> SendInput(std::string_view bytes) = 0;
  virtual Result<> CloseInput() = 0;
  virtual Result<> Resize(uint16_t columns, uint16_t rows) = 0;  // terminals only

  virtual void Stop() = 0;  // Run() ends; any thread
};

// The exit code in the Status that ends a command; kInternal with its message: a failure of the runtime.
Result<int> ExitCodeOf(const std::string& status);

// Passes bytes between a connected socket and a port of a pod, until both directions have ended. Uses up the URL.
// kInternal: the server's error, such as a refused connection.
Result<> ForwardPort(const StreamingTarget& target, uint16_t port, int socket);

}  // namespace keelson::http
