// For tests: kube-cni's routes between the nodes of a PolicyWorld, in place of the static ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cni/agent/health.h"
#include "cni/agent/syncer.h"
#include "tests/policies/policy_world.h"

namespace keelson::policies {

class Overlay {
 public:
  enum class Kind { kHostGw, kVxlan, kIpsec, kWireguard };

  // Connects both nodes. An error when the kernel lacks what the kind needs. `world` outlives the result.
  static Result<std::unique_ptr<Overlay>> Start(const PolicyWorld& world, Kind kind);
  ~Overlay();
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

 private:
  Overlay() : health_(std::chrono::minutes(3), Clock::Real()) {}
  agent::Config ConfigFor(const std::string& node, Kind kind) const;
  Result<> Open(const PolicyWorld& world, const std::string& node, Kind kind);

  std::string dir_;
  agent::NodeMap nodes_;  // as the API server has them
  agent::Health health_;
  std::vector<std::unique_ptr<agent::Syncer>> syncers_;
};

}  // namespace keelson::policies
