// Lists PodResources from pods and the managers of CPUs, memory and devices.
#pragma once

#include <memory>

#include "kubelet/podresources/resources.h"
#include "lib/api/types.h"

namespace keelson::kubelet::podresources {

class Source {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  virtual ~Source() = default;
  // Admitted and not ended.
  virtual std::vector<PodPtr> ActivePods() = 0;
  virtual PodPtr FindPod(const std::string& ns, const std::string& name) = 0;  // null when there is none
  // What the container is allocated; the result's name and sidecar need not be set.
  virtual ContainerResources ResourcesOf(const corev1::Pod& pod, const corev1::Container& container) = 0;
  virtual AllocatableResources Allocatable() = 0;
};

// Lists app containers and sidecars, but not other init containers.
class SourceLister : public Lister {
 public:
  explicit SourceLister(Source& source) : source_(source) {}
  std::vector<PodResources> List() override;
  std::optional<PodResources> Get(const std::string& ns, const std::string& name) override;
  AllocatableResources Allocatable() override { return source_.Allocatable(); }

 private:
  PodResources Of(const corev1::Pod& pod);

  Source& source_;
};

}  // namespace keelson::kubelet::podresources
