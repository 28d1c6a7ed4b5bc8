// Passes the node's pod CIDR to the runtime (UpdateRuntimeConfig), which may generate a CNI configuration from it.
#pragma once

#include <stop_token>
#include <string>

#include "kubelet/cri/runtime.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class PodCidr {  // thread safe
 public:
  // `configured`: podCIDR of the configuration, for standalone kubelets; may be empty.
  PodCidr(cri::RuntimeService& runtime, std::string configured)
      : runtime_(runtime), configured_(std::move(configured)) {}

  // Calls the runtime if the CIDR has changed. `own`: the node; may be null.
  void UpdateRuntime(const corev1::Node* own, std::stop_token stop);

 private:
  cri::RuntimeService& runtime_;
  const std::string configured_;
  Mutex mutex_;
  std::string told_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
