// Lists and watches the cluster's Nodes. Like an informer, but it keeps only a NodeInfo per Node and
// decodes only the fields that it needs: thousands of nodes that report their status every few minutes cost
// little memory and time.
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
  // Calls `on_change` on Run()'s thread after the first list, and whenever a NodeInfo is added, changed or
  // removed. It must not block.
  NodeWatch(NodeSource source, std::function<void()> on_change, Clock& clock = Clock::Real());

  // A copy to keep; null until the first list is complete. Thread safe.
  std::shared_ptr<const NodeMap> Nodes() const;
  // Runs until `stop`. While the API server is down it retries, and keeps the Nodes that it knows.
  Result<> Run(std::stop_token stop);

 private:
  void Replace(NodeMap found);
  Result<std::string> Handle(const client::WatchEvent& event);

  const NodeSource source_;
  const std::function<void()> on_change_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::optional<NodeMap> nodes_ KEELSON_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const NodeMap> copy_ KEELSON_GUARDED_BY(mutex_);  // null: nodes_ is newer
};

}  // namespace keelson::cni::agent
