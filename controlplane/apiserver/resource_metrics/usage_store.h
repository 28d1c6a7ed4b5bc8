// The latest usage of nodes and pods, from the kubelets' samples.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/apiserver/resource_metrics/samples.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

struct PodUsage {
  WallTime time;
  std::chrono::nanoseconds window;
  std::map<std::string, Usage> containers;
};

class UsageStore {  // thread safe
 public:
  explicit UsageStore(std::chrono::nanoseconds period) : period_(period) {}

  // Stores a node's new sample; forgets pods that are not in it.
  void Put(const std::string& node, UsageSample sample);
  // Call when scraping the node failed, or the node is gone.
  void Remove(const std::string& node);

  // Nullopt: unknown, or not known for long enough.
  std::optional<Usage> Node(std::string_view node) const;
  // The usage of a pod on `node`; `key`: "namespace/name". Nullopt unless all of its containers are known;
  // the time is the earliest of the containers'.
  std::optional<PodUsage> Pod(std::string_view node, std::string_view key) const;

 private:
  std::shared_ptr<const NodeUsage> Find(std::string_view node) const;

  const std::chrono::nanoseconds period_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const NodeUsage>, std::less<>> nodes_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
