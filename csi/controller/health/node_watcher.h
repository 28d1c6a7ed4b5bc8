// Tells in events of claims that the node of the pods that use them has failed, and that it has recovered: the node watcher
// of external-health-monitor (--enable-node-watcher).
#pragma once

#include <map>
#include <set>
#include <string>

#include "csi/controller/common/controller.h"

namespace keelson::csi::controller {

struct NodeWatcherOptions {
  std::chrono::nanoseconds patience{std::chrono::minutes(5)};  // how long a node may be not ready
  std::chrono::nanoseconds poll{std::chrono::minutes(1)};  // --monitor-interval: of nodes that are not ready
};

class NodeWatcher : public Controller {
 public:
  NodeWatcher(const Environment& environment, NodeWatcherOptions options);
  // Key: the name of a node.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  // Events of the claims of the driver that pods on the node use.
  Result<> TellClaims(const std::string& node, bool failed, std::stop_token stop);

  const NodeWatcherOptions options_;
  client::Informer<corev1::Node>& nodes_;
  client::Informer<Volume>& volumes_;
  Mutex mutex_;
  std::map<std::string, SteadyTime> not_ready_ KEELSON_GUARDED_BY(mutex_);  // since when
  std::set<std::string> told_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::csi::controller
