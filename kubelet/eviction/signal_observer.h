// Observes the eviction signals (memory.available, nodefs.available, ...) and what each pod uses.
#pragma once

#include <atomic>
#include <stop_token>
#include <string>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/container/paths.h"
#include "kubelet/cri/runtime.h"
#include "kubelet/eviction/plan.h"

namespace keelson::kubelet {

class SignalObserver {  // thread safe
 public:
  // References have to outlive it. `pods_memory`: memory that all pods together may have.
  SignalObserver(cri::RuntimeService& runtime, cri::ImageService& images, PodCgroups& cgroups, Paths paths,
                 int64_t memory_capacity, int64_t pods_memory, int64_t max_pids)
      : runtime_(runtime),
        images_(images),
        cgroups_(cgroups),
        paths_(std::move(paths)),
        memory_capacity_(memory_capacity),
        pods_memory_(pods_memory),
        max_pids_(max_pids) {}

  // The signals that can be read now; others are absent.
  Observations Observe(std::stop_token stop);
  // What the pod uses now. Asks the runtime and reads directories, so it may take long.
  PodUsage Usage(const corev1::Pod& pod);
  DiskLayout layout() const { return layout_; }  // as of the last Observe

 private:
  cri::RuntimeService& runtime_;
  cri::ImageService& images_;
  PodCgroups& cgroups_;
  const Paths paths_;
  std::atomic<DiskLayout> layout_ = DiskLayout();
  const int64_t memory_capacity_, pods_memory_, max_pids_;
};

}  // namespace keelson::kubelet
