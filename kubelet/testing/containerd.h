// A containerd for a test, with its own root, state, socket, network namespace and cgroup.
#pragma once

#include <memory>
#include <string>

#include "lib/base/error.h"

namespace keelson::kubelet {

class Containerd {
 public:
  // Why this machine cannot run one; empty: it can.
  static std::string Missing();
  // Starts it below `dir` with images docker.io/library/pause:test and docker.io/library/busybox:test, which
  // are made on the spot. Moves the calling thread, and threads that it creates, into a new network
  // namespace.
  // `systemd_cgroups`: has systemd make the containers' cgroups.
  static Result<std::unique_ptr<Containerd>> Start(const std::string& dir, bool systemd_cgroups = false);
  ~Containerd();

  const std::string& socket() const { return socket_; }

 private:
  Containerd() = default;
  pid_t pid_ = -1;
  std::string dir_, socket_;
};

}  // namespace keelson::kubelet
