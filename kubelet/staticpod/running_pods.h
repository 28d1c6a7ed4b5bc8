// Static pods that were running when the kubelet began. They keep their identity where their manifest is what
// it was, whichever kubelet gave it to them and by which rules: no container restarts because of another
// kubelet.
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
  // `key`: namespace/name. seen: when the kubelet of that time read the manifest.
  void Add(const std::string& key, std::string uid, WallTime seen);
  // The uid of the pod of that name that runs: one of `uids`, the first before others, or any where the
  // manifest has not been touched since it was read.
  std::optional<std::string> Find(const std::string& key, const std::vector<std::string>& uids,
                                  WallTime manifest_changed) const;

 private:
  struct Pod {
    std::string uid;
    WallTime seen;
  };
  std::multimap<std::string, Pod> pods_;
};

// From the annotations of ready sandboxes of pods of the source: "file" or "http".
Result<RunningPods> FindRunningPods(cri::RuntimeService& runtime, const std::string& source,
                                    std::stop_token stop);

}  // namespace keelson::kubelet
