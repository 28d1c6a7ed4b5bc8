// Static pods that ran when the kubelet started. They keep their UID if their manifest has not changed, whichever
// kubelet has given it: an upgrade or a change of the kubelet restarts no container.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

class RunningPods {
 public:
  // `key`: namespace/name. `seen`: when that kubelet read the manifest.
  void Add(const std::string& key, std::string uid, WallTime seen);
  // The UID of the running pod of that name: the first of `uids` that runs, or any if the manifest has not been
  // modified since it was read. nullopt: none.
  std::optional<std::string> Find(const std::string& key, const std::vector<std::string>& uids,
                                  WallTime manifest_changed) const;

 private:
  struct Pod {
    std::string uid;
    WallTime seen;
  };
  std::multimap<std::string, Pod> pods_;
};

// Reads the annotations of ready sandboxes. `source`: "file" or "http".
Result<RunningPods> FindRunningPods(cri::RuntimeService& runtime, const std::string& source,
                                    std::stop_token stop);

}  // namespace keelson::kubelet
