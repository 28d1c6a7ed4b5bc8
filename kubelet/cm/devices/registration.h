// Where device plugins register: gRPC on <root>/device-plugins/kubelet.sock.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/error.h"

namespace keelson::kubelet::devices {

inline constexpr char kRegistrationSocket[] = "kubelet.sock";

struct RegistrationRequest {
  std::string version, resource;
  std::string endpoint;  // name of the plugin's socket beside the kubelet's
};

class RegistrationServer {
 public:
  // The plugin is answered when this returns, with the error's message if it is one. Concurrent calls are
  // possible.
  using Accept = std::function<Result<>(const RegistrationRequest& request)>;
  static Result<std::unique_ptr<RegistrationServer>> Start(const std::string& dir, Accept accept);
  ~RegistrationServer();

 private:
  struct Impl;
  explicit RegistrationServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet::devices
