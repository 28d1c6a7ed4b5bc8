// Carries API requests: over HTTP (NewHttpTransport), within the process to an API server
// (controlplane/apiserver), or to a fake API in tests. Thread safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "lib/base/error.h"

namespace keelson::client {

struct ApiRequest {
  std::string method = "GET";
  std::string target;  // path and encoded query: /api/v1/pods?watch=true
  std::string content_type;
  std::string accept = "application/vnd.kubernetes.protobuf";
  std::string body;
};

struct ApiResponse {
  int status = 0;
  std::string content_type;
  std::string body;
};

class ApiStream {
 public:
  virtual ~ApiStream() = default;
  // Blocks for the next bytes; empty at the end. kTimeout after `idle` of silence, kCancelled on `stop`.
  virtual Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle) = 0;
  // For readers without a thread of their own, which Read() with no patience: calls `readable` when bytes, the end or
  // a failure have come since the last Read(). Calls come from any thread, perhaps from within this one, must not
  // block, and may be more than there is to read; one may still be under way when the stream is gone.
  virtual void OnReadable(std::function<void()> readable) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Any status is a response; errors are those of the connection (kUnavailable, kTimeout, kCancelled).
  virtual Result<ApiResponse> Do(const ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) = 0;
  // The body of a 2xx response as a stream. Any other status is an error made from the Status in the body.
  virtual Result<std::unique_ptr<ApiStream>> Open(const ApiRequest& request, std::stop_token stop) = 0;
};

struct RestConfig {
  std::string server;  // https://host:port
  std::string ca_pem, certificate_pem, key_pem;
  // The files that these texts came from, if any: the transport rereads them when they change.
  std::string ca_file, certificate_file, key_file;
  std::string token;
  std::string token_file;  // read again when it changes; takes precedence over token
  std::string tls_server_name;
  bool insecure = false;
  std::string user_agent;
};

// Reads a kubeconfig in YAML or JSON: clusters, users, contexts; data and file forms of each credential.
// `context` empty: the current context.
Result<RestConfig> LoadKubeconfig(const std::string& path, const std::string& context = "");

// Rereads certificates that came from files when the files change.
Result<std::shared_ptr<Transport>> NewHttpTransport(const RestConfig& config);

}  // namespace keelson::client
