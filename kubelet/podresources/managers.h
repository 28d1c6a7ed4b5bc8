// The PodResources source on the device, CPU and memory managers.
#pragma once

#include <functional>

#include "kubelet/cm/cpu/cpu_manager.h"
#include "kubelet/cm/devices/manager.h"
#include "kubelet/cm/memory/memory_manager.h"
#include "kubelet/podresources/source.h"

namespace keelson::kubelet::podresources {

struct Managers {
  devices::DeviceManager& devices;
  const CpuManager* cpus = nullptr;       // null: policy none
  const MemoryManager* memory = nullptr;  // null: policy None
};

class ManagersSource : public Source {
 public:
  struct Pods {
    std::function<std::vector<PodPtr>()> active;
    std::function<PodPtr(const std::string& ns, const std::string& name)> find;
  };
  ManagersSource(Managers managers, Pods pods) : managers_(managers), pods_(std::move(pods)) {}

  std::vector<PodPtr> ActivePods() override { return pods_.active(); }
  PodPtr FindPod(const std::string& ns, const std::string& name) override { return pods_.find(ns, name); }
  ContainerResources ResourcesOf(const corev1::Pod& pod, const corev1::Container& container) override;
  AllocatableResources Allocatable() override;

 private:
  const Managers managers_;
  const Pods pods_;
};

}  // namespace keelson::kubelet::podresources
