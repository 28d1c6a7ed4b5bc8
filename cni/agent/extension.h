// An optional part of the agent: encryption, BGP. Used by the syncer's thread only.
#pragma once

#include "cni/agent/plan.h"

namespace keelson::cni::agent {

class Extension {
 public:
  virtual ~Extension() = default;
  // Runs before the routes are written; returns the number of changes. May set `link` to the device that
  // kTunnelLink stands for.
  virtual Result<int> BeforeRoutes(const Plan&, const NodeMap&, int& /*link*/) { return 0; }
  // Runs after the routes are written; returns the number of changes.
  virtual Result<int> AfterRoutes(const Plan&, const NodeMap&) { return 0; }
};

}  // namespace keelson::cni::agent
