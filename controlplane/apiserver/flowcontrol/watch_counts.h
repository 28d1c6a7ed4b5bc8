// Counts the watches that a write would notify.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "controlplane/apiserver/request/request_info.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver::flowcontrol {

class WatchCounts {  // thread safe
 public:
  // Group, resource, namespace, name; an empty one matches all.
  using Scope = std::tuple<std::string, std::string, std::string, std::string>;

  // A kubelet's watch of its node's pods sees few of them, so such watches are counted separately.
  static Scope ScopeOf(const RequestInfo& watch) {
    const bool of_node = watch.resource == "pods" && watch.field_selector.rfind("spec.nodeName=", 0) == 0;
    return {watch.group, watch.resource, watch.ns, of_node ? kOfNode : watch.name};
  }

  void Add(const Scope& scope, int by) {
    MutexLock lock(mutex_);
    int& count = counts_[scope];
    count += by;
    if (count == 0) counts_.erase(scope);
  }

  int InterestedIn(const RequestInfo& write) const {
    MutexLock lock(mutex_);
    auto of = [&](const std::string& ns, const std::string& name) KEELSON_REQUIRES(mutex_) {
      auto found = counts_.find({write.group, write.resource, ns, name});
      return found == counts_.end() ? 0 : found->second;
    };
    int count = of("", "");
    if (!write.ns.empty()) count += of(write.ns, "");
    if (!write.name.empty()) count += of(write.ns, write.name);
    if (of("", kOfNode) > 0) ++count;  // a pod is on one node
    return count;
  }

 private:
  static constexpr const char* kOfNode = "spec.nodeName";  // never an object's name: those are lower case

  mutable Mutex mutex_;
  std::map<Scope, int> counts_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver::flowcontrol
