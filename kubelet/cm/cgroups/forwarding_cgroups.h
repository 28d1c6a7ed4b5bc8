// Forwards every call to another PodCgroups: the base of decorators, which override some of the calls.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/cm/cgroups/pod_cgroups.h"

namespace keelson::kubelet {

class ForwardingCgroups : public PodCgroups {
 public:
  explicit ForwardingCgroups(PodCgroups& real) : real_(real) {}

  Result<> Start(const NodeContext& node) override { return real_.Start(node); }
  Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) override {
    return real_.Ensure(pod, node);
  }
  std::string Parent(const corev1::Pod& pod) const override { return real_.Parent(pod); }
  Result<> Remove(const std::string& uid) override { return real_.Remove(uid); }
  std::set<std::string> Uids() const override { return real_.Uids(); }
  linux::CgroupUsage Usage(const corev1::Pod& pod) const override { return real_.Usage(pod); }
  Result<bool> UpdateQosCgroups(const std::vector<PodPtr>& pods, const NodeContext& node) override {
    return real_.UpdateQosCgroups(pods, node);
  }
  linux::CgroupUsage UsageOfAll() const override { return real_.UsageOfAll(); }
  linux::CgroupPressure PressureOfAll() const override { return real_.PressureOfAll(); }
  linux::CgroupPressure PressureOfNode() const override { return real_.PressureOfNode(); }
  linux::CgroupPressure PressureOf(const corev1::Pod& pod) const override { return real_.PressureOf(pod); }
  ContainerCgroup Container(const corev1::Pod& pod, const std::string& id) const override {
    return real_.Container(pod, id);
  }
  bool KillContainer(const corev1::Pod& pod, const std::string& id) override {
    return real_.KillContainer(pod, id);
  }
  linux::CgroupAccount Account(const std::string& path) const override { return real_.Account(path); }
  std::unique_ptr<linux::MemoryAlarm> WatchMemory() const override { return real_.WatchMemory(); }
  std::optional<pid_t> AnyProcess(const corev1::Pod& pod) const override { return real_.AnyProcess(pod); }

 protected:
  PodCgroups& real_;
};

}  // namespace keelson::kubelet
