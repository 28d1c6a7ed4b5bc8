// The gRPC server on <root>/device-plugins/kubelet.sock, where device plugins register.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/error.h"

namespace keelson::kubelet::devices {

inline constexpr char kRegistrationSocket[] = "kubelet.sock";

struct RegistrationRequest {
  std::string version, resource;
  std::string endpoint;  // file name of the plugin's socket, in the same directory
};

class RegistrationServer {
 public:
  // Called on gRPC's threads, concurrently. Its result is the answer to the plugin.
  using Accept = std::function<Result<>(const RegistrationRequest& request)>;
  static Result<std::unique_ptr<RegistrationServer>> Start(const std::string& dir, Accept accept);
  ~RegistrationServer();

 private:
  struct Impl;
  explicit RegistrationServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet::devices
