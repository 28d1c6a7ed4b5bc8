// What the node and its pods use at this moment, as eviction decides by.
#pragma once

#include <atomic>
#include <stop_token>
#include <string>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/container/paths.h"
#include "kubelet/cri/runtime.h"
#include "kubelet/eviction/plan.h"

namespace keelson::kubelet {

class UsageReader {  // thread safe
 public:
  UsageReader(cri::RuntimeService& runtime, cri::ImageService& images, PodCgroups& cgroups, Paths paths,
              int64_t memory_capacity, int64_t pods_memory, int64_t max_pids)
      : runtime_(runtime),
        images_(images),
        cgroups_(cgroups),
        paths_(std::move(paths)),
        memory_capacity_(memory_capacity),
        pods_memory_(pods_memory),
        max_pids_(max_pids) {}

  // Signals that cannot be known now are absent.
  Observations Observe(std::stop_token stop);
  PodUsage Usage(const corev1::Pod& pod);
  DiskLayout layout() const { return layout_; }  // as of the last Observe

 private:
  cri::RuntimeService& runtime_;
  cri::ImageService& images_;
  PodCgroups& cgroups_;
  const Paths paths_;
  std::atomic<DiskLayout> layout_ = DiskLayout();
  const int64_t memory_capacity_, pods_memory_, max_pids_;  // pods_memory: what all pods together may have
};

}  // namespace keelson::kubelet
