// A kubelet on a fake clock and a runtime in memory that can fail.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/testing/cgroup_names.h"
#include "kubelet/testing/faults.h"
#include "kubelet/testing/kubelet_harness.h"
#include "kubelet/testing/threads.h"
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

class FaultTest : public ::testing::Test {
 protected:
  using Condition = std::function<bool()>;
  using PodCondition = std::function<bool(const corev1::Pod*)>;

  void SetUp() override {
    char name[] = "/tmp/kubelet_faults.XXXXXX";
    dir_ = ::mkdtemp(name);
    runtime_.AddImage("img:1");
    harness_ = std::make_unique<KubeletHarness>(*gated_runtime_, *gated_images_, cgroups_, mounter_, dir_,
                                                "10.7.0.1", clock_);
    api_ = std::make_shared<ApiSwitch>(harness_->wire(), clock_);
    harness_->ReachApiBy(api_);
  }
  void TearDown() override {
    faults_.Heal();
    api_->On();
    harness_.reset();
    (void)RemoveTree(dir_);
  }

  // Lets `most` pass, a `step` at a time, until `condition` holds.
  bool PassUntil(std::chrono::milliseconds most, const Condition& condition,
                 std::chrono::milliseconds step = std::chrono::seconds(1)) {
    const SteadyTime end = clock_.SteadyNow() + most;
    Settle();
    while (!condition()) {
      if (clock_.SteadyNow() >= end) return false;
      clock_.Advance(step);
      Settle();
    }
    return true;
  }
  void Pass(std::chrono::milliseconds time, std::chrono::milliseconds step = std::chrono::seconds(1)) {
    PassUntil(
        time, [] { return false; }, step);
  }
  bool PassUntil(std::chrono::milliseconds most, const std::string& pod, const PodCondition& condition) {
    return PassUntil(most, [&] { return harness_->Sees(pod, condition); });
  }
  // Waits until there were no calls to the runtime or the API server for a while, and no thread is runnable (on a
  // busy machine one may wait long for a CPU): what was due has been done.
  void Settle() {
    Mutex mutex;
    CondVar cv;
    for (size_t last = 0, now = Activity(), quiet = 0; quiet < 5 || OthersAtWork(); now = Activity()) {
      quiet = now == last ? quiet + 1 : 0;
      last = now;
      MutexLock lock(mutex);
      cv.wait_for(mutex, std::chrono::milliseconds(1));
    }
  }

  corev1::Pod Create(const std::string& name, const std::string& container = "main",
                     const std::string& more = "") {
    return harness_->Create(R"({"metadata":{"name":")" + name + R"("},"spec":{"containers":[{"name":")" +
                            container + R"(","image":"img:1"}])" + more + "}}");
  }
  corev1::Node Node() { return *harness_->api().Get<corev1::Node>("", "node-under-test"); }
  // "" while the node is ready.
  std::string WhyNotReady() {
    const corev1::Node node = Node();
    for (const auto& condition : node.status().conditions()) {
      if (condition.type() == "Ready") return condition.status() == "True" ? "" : condition.message();
    }
    return "unknown";
  }
  static std::string WaitingFor(const corev1::Pod* pod) {
    if (!pod || pod->status().container_statuses().empty()) return "";
    return pod->status().container_statuses(0).state().waiting().reason();
  }
  static bool IsGone(const corev1::Pod* pod) { return pod == nullptr; }
  // What is left of pods, as text.
  std::string Leftovers() {
    std::string out;
    auto containers = runtime_.ListContainers({}, {});
    auto sandboxes = runtime_.ListPodSandbox({}, {});
    for (const auto& container : *containers) out += " container " + container.name;
    for (const auto& sandbox : *sandboxes) out += " sandbox " + sandbox.metadata.name;
    if (!mounter_.MountPointsUnder(dir_)->empty()) out += " mounts";
    if (!cgroups_.Uids().empty()) out += " cgroups";
    if (auto dirs = ListDir(dir_ + "/kubelet/pods"); dirs && !dirs->empty()) out += " directories";
    if (auto logs = ListDir(dir_ + "/logs"); logs && !logs->empty()) out += " logs";
    return out;
  }

  std::string dir_;
  SettableClock clock_;
  cri::FakeRuntime runtime_{clock_};
  RuntimeFaults faults_{clock_};
  std::unique_ptr<cri::RuntimeService> gated_runtime_ = GatedRuntime(runtime_, faults_);
  std::unique_ptr<cri::ImageService> gated_images_ = GatedImages(runtime_, faults_);
  NoMounts mounter_;
  CgroupNames cgroups_;
  std::unique_ptr<KubeletHarness> harness_;
  std::shared_ptr<ApiSwitch> api_;

 private:
  size_t Activity() { return faults_.Calls() + api_->Requests(); }
};

}  // namespace keelson::kubelet
