// Tells the runtime which addresses the node's pods have: of them a runtime that has a template of a CNI
// configuration makes one.
#pragma once

#include <stop_token>
#include <string>

#include "kubelet/cri/runtime.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class PodCidr {  // thread safe
 public:
  // `configured`: where there is no API server to say so; may be empty.
  PodCidr(cri::RuntimeService& runtime, std::string configured)
      : runtime_(runtime), configured_(std::move(configured)) {}

  // Does nothing but when it is not what the runtime was told last. `own`: the node; may be null.
  void UpdateRuntime(const corev1::Node* own, std::stop_token stop);

 private:
  cri::RuntimeService& runtime_;
  const std::string configured_;
  Mutex mutex_;
  std::string told_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
