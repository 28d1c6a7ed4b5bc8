// Features of the container runtime, from its last Status answer.
#pragma once

#include <optional>

#include "kubelet/container/node_context.h"
#include "kubelet/cri/runtime.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class RuntimeFeatures {  // thread safe
 public:
  explicit RuntimeFeatures(cri::RuntimeService& runtime) : runtime_(runtime) {}
  void Learn(const cri::RuntimeStatus& status) {
    MutexLock lock(mutex_);
    last_ = status;
  }
  // Returns `node` with the features set. Asks the runtime if it has not answered yet.
  NodeContext AddTo(NodeContext node) {
    if (!Known()) {
      if (auto status = runtime_.Status()) Learn(*status);
    }
    MutexLock lock(mutex_);
    if (!last_) return node;
    node.handlers = last_->handlers;
    node.supplemental_groups_policy = last_->supplemental_groups_policy;
    return node;
  }

 private:
  bool Known() {
    MutexLock lock(mutex_);
    return last_.has_value();
  }

  cri::RuntimeService& runtime_;
  Mutex mutex_;
  std::optional<cri::RuntimeStatus> last_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
