// BGP by BIRD 2: the agent writes BIRD's configuration and has it read. BIRD announces this node's pod CIDRs
// to the peers, and puts what it learns of the cluster's CIDRs into the kernel (with a protocol number of its
// own, 12). BIRD itself is started by somebody else: `bird -c FILE -s SOCKET`.
#pragma once

#include <chrono>
#include <string>

#include "cni/agent/extension.h"

namespace keelson::cni::agent {

// A peer gets the pod CIDRs of its own address' family. Pure.
std::string BirdConfigText(const Config& config, const Plan& plan, const NodeInfo& self);

// One command over the control socket; the reply's last line. What BIRD refuses (8xxx, 9xxx) is kInvalid, a
// BIRD that is not there kUnavailable.
Result<std::string> BirdCommand(const std::string& socket_path, const std::string& command,
                                std::chrono::milliseconds timeout);

class Bird : public Extension {
 public:
  explicit Bird(const Config& config) : config_(config) {}
  Result<int> AfterRoutes(const Plan& plan, const NodeMap& nodes) override;

 private:
  const Config config_;
  bool loaded_ = false;  // BIRD has read what is in the file
};

}  // namespace keelson::cni::agent
