// How API requests travel: over HTTP (HttpTransport), inside the process to an API server
// (controlplane/apiserver), or to a fake API in tests. Thread safe.
#pragma once

#include <chrono>
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
  // Blocks for the next bytes; empty at the end. kTimeout after `idle` of silence, kCancelled by `stop`.
  virtual Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Any status is a response; errors are those of the way (kUnavailable, kTimeout, kCancelled).
  virtual Result<ApiResponse> Do(const ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) = 0;
  // A 2xx response's body as a stream; any other status is an error made from the Status in the body.
  virtual Result<std::unique_ptr<ApiStream>> Open(const ApiRequest& request, std::stop_token stop) = 0;
};

struct RestConfig {
  std::string server;  // https://host:port
  std::string ca_pem, certificate_pem, key_pem;
  // Where those texts came from, if from files: looked at again while the transport is used.
  std::string ca_file, certificate_file, key_file;
  std::string token;
  std::string token_file;  // read again when it changes; wins over token
  std::string tls_server_name;
  bool insecure = false;
  std::string user_agent;
};

// kubeconfig in YAML or JSON: clusters, users, contexts; data and file forms of each credential.
Result<RestConfig> LoadKubeconfig(const std::string& path, const std::string& context = "");

// Certificates that came from files are read again when the files change.
Result<std::shared_ptr<Transport>> NewHttpTransport(const RestConfig& config);

}  // namespace keelson::client
