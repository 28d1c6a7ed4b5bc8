// gRPC servers on Unix sockets. Shows no gRPC header; who implements a service includes the generated ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace grpc {
class Service;
}

namespace keelson::rpc {

// Serves until destroyed: calls under way then have a second to end before they are cancelled, and the socket
// is removed. Handlers run on gRPC's threads, one a call.
class UnixServer {
 public:
  // A socket that a dead process left at `path` is replaced. The services must outlive the server.
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
