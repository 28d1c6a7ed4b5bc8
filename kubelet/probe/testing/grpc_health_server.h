// A server of gRPC's health service (grpc.health.v1.Health), in the network namespace of the creating thread.
#pragma once

#include <memory>
#include <string>

namespace keelson::kubelet {

class GrpcHealthServer {
 public:
  explicit GrpcHealthServer(const std::string& ip = "127.0.0.1");  // on a free port
  ~GrpcHealthServer();
  int port() const;
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  void Set(const std::string& service, bool serving);
  void SetAll(bool serving);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet
