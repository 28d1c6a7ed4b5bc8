// The cluster's Nodes, listed and watched. Like an informer, but what is kept of a Node is its NodeInfo, and
// nothing is decoded that is not looked at: a cluster of thousands of nodes, each reporting its state every
// few minutes, costs this agent little memory and time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "cni/agent/node.h"
#include "cni/agent/node_source.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::cni::agent {

class NodeWatch {
 public:
  // `on_change` runs on Run()'s thread after the first list, and whenever a NodeInfo has come, changed or
  // gone. It must not block.
  NodeWatch(NodeSource source, std::function<void()> on_change, Clock& clock = Clock::Real());

  // A copy to keep; null until the first list is complete. Thread safe.
  std::shared_ptr<const NodeMap> Nodes() const;
  // Until `stop`; an API server that is away is waited for, and nothing is forgotten meanwhile.
  Result<> Run(std::stop_token stop);

 private:
  Result<> List(std::stop_token stop);
  Result<> WatchOnce(std::stop_token stop, int& events);
  Result<> Handle(const client::WatchEvent& event);

  const NodeSource source_;
  const std::function<void()> on_change_;
  Clock& clock_;
  std::string resource_version_;  // Run()'s thread only
  mutable Mutex mutex_;
  std::optional<NodeMap> nodes_ GUARDED_BY(mutex_);
  mutable std::shared_ptr<const NodeMap> copy_ GUARDED_BY(mutex_);  // null: nodes_ is newer
};

}  // namespace keelson::cni::agent
