// A part of the agent that not every cluster has: encryption, BGP. Used by the syncer's thread alone.
#pragma once

#include "cni/agent/plan.h"

namespace keelson::cni::agent {

class Extension {
 public:
  virtual ~Extension() = default;
  // Before the routes are written; how many things were changed. May set `link`: the device that kTunnelLink
  // stands for.
  virtual Result<int> BeforeRoutes(const Plan&, const NodeMap&, int& /*link*/) { return 0; }
  // After the routes are written.
  virtual Result<int> AfterRoutes(const Plan&, const NodeMap&) { return 0; }
};

}  // namespace keelson::cni::agent
