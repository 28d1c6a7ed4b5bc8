#include "kubelet/node/pod_cidr.h"

#include "lib/base/log.h"

namespace keelson::kubelet {

void PodCidr::UpdateRuntime(const corev1::Node* own, std::stop_token stop) {
  std::string cidrs;
  if (own) {
    for (const std::string& cidr : own->spec().pod_cidrs()) cidrs += (cidrs.empty() ? "" : ",") + cidr;
  }
  if (cidrs.empty()) cidrs = configured_;
  MutexLock lock(mutex_);
  if (cidrs.empty() || cidrs == told_) return;
  if (auto updated = runtime_.UpdateRuntimeConfig(cidrs, stop); !updated) {
    log::Warn("Cannot tell the runtime the pods' addresses", {{"cidrs", cidrs}, {"err", updated.error()}});
    return;  // the next look tries again
  }
  told_ = std::move(cidrs);
}

}  // namespace keelson::kubelet
