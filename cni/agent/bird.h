// BGP through BIRD 2: the agent writes BIRD's configuration and makes BIRD load it. BIRD announces this
// node's pod CIDRs to the peers, and puts the routes that it learns for the cluster's CIDRs into the kernel
// (with its own protocol number, 12). The agent does not start BIRD: run `bird -c FILE -s SOCKET`.
#pragma once

#include <chrono>
#include <string>

#include "cni/agent/extension.h"

namespace keelson::cni::agent {

// The text of BIRD's configuration. A peer gets the pod CIDRs of its address' family. Pure.
std::string BirdConfigText(const Config& config, const Plan& plan, const NodeInfo& self);

// Runs one command over the control socket; returns the reply's last line. kInvalid: BIRD refuses it (8xxx,
// 9xxx); kUnavailable: BIRD does not run.
Result<std::string> BirdCommand(const std::string& socket_path, const std::string& command,
                                std::chrono::milliseconds timeout);

class Bird : public Extension {
 public:
  explicit Bird(const Config& config) : config_(config) {}
  Result<int> AfterRoutes(const Plan& plan, const NodeMap& nodes) override;

 private:
  const Config config_;
  bool loaded_ = false;  // BIRD has loaded the current file
};

}  // namespace keelson::cni::agent
