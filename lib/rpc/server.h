// gRPC servers on Unix sockets. Shows no gRPC header; callers that implement a service include the
// generated headers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace grpc {
class Service;
}

namespace keelson::rpc {

// Serves until destroyed. Destruction gives running calls a second to end, cancels the rest and removes the
// socket. Handlers run on gRPC's threads, one per call.
class UnixServer {
 public:
  // Listens on `path`, replacing a socket that a dead process left there. The services must outlive the
  // server.
  static Result<std::unique_ptr<UnixServer>> Start(const std::string& path,
                                                   const std::vector<grpc::Service*>& services);
  ~UnixServer();
  UnixServer(const UnixServer&) = delete;
  UnixServer& operator=(const UnixServer&) = delete;

 private:
  struct Impl;
  explicit UnixServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::rpc
