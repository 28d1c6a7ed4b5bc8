// Kills the kubelet at each step of a pod's start and termination, and starts another one.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/testing/cgroup_names.h"
#include "kubelet/testing/kubelet_harness.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

constexpr char kPod[] = R"({"metadata":{"name":"web"},"spec":{
  "initContainers":[{"name":"init","image":"img:1"},
                    {"name":"side","image":"img:1","restartPolicy":"Always"}],
  "containers":[{"name":"main","image":"img:1","volumeMounts":[
    {"name":"fast","mountPath":"/fast"},{"name":"fast","mountPath":"/part","subPath":"part"}]}],
  "volumes":[{"name":"fast","emptyDir":{"medium":"Memory"}}]}})";

// A pod's life through a kubelet that may die and a second one.
class Life {
 public:
  Life() {
    char name[] = "/tmp/kubelet_crash.XXXXXX";
    dir_ = ::mkdtemp(name);
    runtime_.AddImage("img:1");
    runtime_.ExitOnStart("init", 0);
    harness_ = std::make_unique<KubeletHarness>(*crashing_runtime_, runtime_, *crashing_cgroups_,
                                                *crashing_mounter_, dir_, "10.7.0.1");
    harness_->CrashBy(plan_);
    harness_->Start();
  }
  ~Life() {
    harness_.reset();
    (void)RemoveTree(dir_);
  }

  // The steps that were taken.
  std::vector<std::string> Live(size_t fatal, bool after) {
    plan_.Arm(fatal, after);
    uid_ = harness_->Create(kPod).metadata().uid();
    runtime_.Await([&] { return plan_.dead() || Ready(); });
    if (plan_.dead()) Revive();
    EXPECT_TRUE(harness_->Await("web", IsPodReady));
    CheckRunning();
    harness_->Delete("web", 1);
    EXPECT_EQ(AwaitNothing(), "");
    auto steps = plan_.Steps();
    if (plan_.dead()) Revive();
    EXPECT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
    EXPECT_EQ(AwaitNothing(), "");
    return steps;
  }

 private:
  bool Ready() {
    corev1::Pod pod = harness_->Get("web");
    return IsPodReady(&pod);
  }
  void Revive() {
    harness_->Stop();
    std::map<std::string, std::string> ran;
    for (const char* name : {"main", "side"}) ran[name] = runtime_.RunningContainer(uid_, name);
    bool goes_on = runtime_.Count("StopContainer main") + runtime_.Count("StopPodSandbox web") == 0;
    plan_.Arm(0, false);
    harness_->Start();
    if (!goes_on) return;
    corev1::Pod pod;
    if (harness_->api().Get<corev1::Pod>("default", "web")->metadata().has_deletion_timestamp()) return;
    EXPECT_TRUE(harness_->Await("web", IsPodReady));
    for (const auto& [name, id] : ran) {
      if (!id.empty()) {
        EXPECT_EQ(runtime_.RunningContainer(uid_, name), id) << "what ran goes on";
      }
    }
  }
  void CheckRunning() {
    std::map<std::string, int> running;
    auto containers = runtime_.ListContainers({}, {});
    for (const auto& container : *containers) {
      if (container.state != cri::ContainerState::kExited) ++running[container.name];
    }
    EXPECT_EQ(running, (std::map<std::string, int>{{"main", 1}, {"side", 1}}));
    EXPECT_EQ(runtime_.ListPodSandbox({}, {})->size(), 1u);
    corev1::Pod pod = harness_->Get("web");
    EXPECT_EQ(pod.status().container_statuses(0).restart_count(), 0);
  }
  // A description of what remains of the pod.
  std::string Leftovers() {
    std::string out;
    auto containers = runtime_.ListContainers({}, {});
    auto sandboxes = runtime_.ListPodSandbox({}, {});
    auto mounts = mounter_.MountPointsUnder(dir_);
    for (const auto& container : *containers) out += " container " + container.name;
    for (const auto& sandbox : *sandboxes) out += " sandbox " + sandbox.id;
    for (const std::string& point : *mounts) out += " mount " + point;
    if (!cgroups_.Uids().empty()) out += " cgroup";
    if (PathExists(dir_ + "/kubelet/pods/" + uid_)) out += " directory";
    if (!ListDir(dir_ + "/logs")->empty()) out += " logs";
    return out;
  }
  // Polls until nothing remains, for up to 30 s.
  std::string AwaitNothing() {
    auto late = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    runtime_.Await(
        [&] { return plan_.dead() || Leftovers().empty() || std::chrono::steady_clock::now() > late; });
    return plan_.dead() ? "" : Leftovers();
  }

  std::string dir_, uid_;
  cri::FakeRuntime runtime_;
  NoMounts mounter_;
  CgroupNames cgroups_;
  CrashPlan plan_;
  std::unique_ptr<cri::RuntimeService> crashing_runtime_ = GatedRuntime(runtime_, plan_);
  std::unique_ptr<Mounter> crashing_mounter_ = CrashingMounter(mounter_, plan_);
  std::unique_ptr<PodCgroups> crashing_cgroups_ = CrashingCgroups(cgroups_, plan_);
  std::unique_ptr<KubeletHarness> harness_;
};

TEST(KubeletCrash, AtEveryStepNothingIsLostOrLeft) {
  std::vector<std::string> steps = Life().Live(0, false);
  ASSERT_GE(steps.size(), 15u);
  for (bool after : {false, true}) {
    for (size_t fatal = 1; fatal <= steps.size(); ++fatal) {
      SCOPED_TRACE(std::string(after ? "after" : "before") + " step " + std::to_string(fatal) + ", " +
                   steps[fatal - 1]);
      Life().Live(fatal, after);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace keelson::kubelet
