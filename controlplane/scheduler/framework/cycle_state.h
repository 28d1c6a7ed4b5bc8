// What one scheduling cycle of a pod carries from one extension point to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/scheduler/types/node_info.h"

namespace keelson::scheduler {

class Plugin;

// Not thread safe: one thread at a time has a cycle.
class CycleState {
 public:
  struct Data {
    virtual ~Data() = default;
  };
  // Stores `data` for `plugin`, in place of what it has stored before.
  void Set(const Plugin* plugin, std::unique_ptr<Data> data);
  // What `plugin` has stored, which must be a T; null when it has stored nothing. The state owns it.
  template <typename T>
  T* Get(const Plugin* plugin) const {
    for (const auto& [owner, data] : data_) {
      if (owner == plugin) return static_cast<T*>(data.get());
    }
    return nullptr;
  }

  std::string nominated_node;  // the node that the pod is nominated for, or ""
  bool IsNominated(const NodeInfo& node) const { return node.facts && node.facts->name == nominated_node; }
  // Plugins whose PreFilter or PreScore answered Skip: bits by position in the framework's lists.
  uint64_t skip_filter_plugins = 0, skip_score_plugins = 0;

 private:
  std::vector<std::pair<const Plugin*, std::unique_ptr<Data>>> data_;
};

}  // namespace keelson::scheduler
