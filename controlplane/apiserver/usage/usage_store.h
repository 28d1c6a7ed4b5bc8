// What the nodes and their pods use, as the last looks at the kubelets have it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/apiserver/usage/samples.h"
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

  // One node's new sample; what is not in it is forgotten.
  void Put(const std::string& node, UsageSample sample);
  // The node could not be asked, or is no more.
  void Remove(const std::string& node);

  // nullopt: not known, or not for long enough.
  std::optional<Usage> Node(std::string_view node) const;
  // Of a pod that runs on `node`, `key` being "namespace/name". All of its containers have to be known; the
  // time is that of the one that was looked at first.
  std::optional<PodUsage> Pod(std::string_view node, std::string_view key) const;

 private:
  std::shared_ptr<const NodeUsage> Find(std::string_view node) const;

  const std::chrono::nanoseconds period_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const NodeUsage>, std::less<>> nodes_ GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
