// Kills the kubelet between steps on a real containerd: nothing leaks in the runtime, the kernel or CNI.
#include <fcntl.h>

#include "kubelet/testing/containerd_test.h"
#include "kubelet/testing/loop_device.h"

namespace keelson::kubelet {
namespace {

constexpr char kPod[] = R"json({"metadata":{"name":"web"},"spec":{"terminationGracePeriodSeconds":1,
  "containers":[{"name":"main","image":"busybox:test",
    "command":["sh","-c","trap 'exit 0' TERM; while true; do sleep 0.1; done"],
    "volumeMounts":[{"name":"fast","mountPath":"/fast"},{"name":"fast","mountPath":"/part","subPath":"part"}]}],
  "volumes":[{"name":"fast","emptyDir":{"medium":"Memory"}}]}})json";

class CrashTest : public ContainerdTest {
 protected:
  void SetUp() override {
    ContainerdTest::SetUp();
    if (!harness_) return;
    harness_->Stop();
    runtime_ = GatedRuntime(*cri_.runtime, plan_);
    crashing_mounter_ = CrashingMounter(*mounter_, plan_);
    crashing_cgroups_ = CrashingCgroups(*cgroups_, plan_);
    harness_ = std::make_unique<KubeletHarness>(*runtime_, *cri_.images, *crashing_cgroups_,
                                                *crashing_mounter_, dir_, "10.213.0.1");
    harness_->CrashBy(plan_);
    harness_->Start();
  }
  void TearDown() override {
    harness_.reset();  // before what it uses
    ContainerdTest::TearDown();
  }
  // The running container of the pod; "": none.
  std::string Running() {
    cri::Filter filter;
    filter.labels["io.kubernetes.pod.uid"] = uid_;
    auto containers = cri_.runtime->ListContainers(filter);
    std::string out;
    for (const auto& container : *containers) {
      if (container.state == cri::ContainerState::kRunning) out += container.id;
    }
    return out;
  }
  void Revive() {
    plan_.AwaitDeath();
    harness_->Stop();
    plan_.Arm(0, false);
    harness_->Start();
  }
  // A description of what remains of the pod.
  std::string Leftovers() {
    std::string out;
    cri::Filter filter;
    filter.labels["io.kubernetes.pod.uid"] = uid_;
    if (!cri_.runtime->ListContainers(filter)->empty()) out += " containers";
    if (!cri_.runtime->ListPodSandbox(filter)->empty()) out += " sandboxes";
    if (!linux::MountPointsUnder(dir_ + "/kubelet")->empty()) out += " mounts";
    if (linux_cgroups_->Exists(root_ + "/kubepods/besteffort/pod" + uid_)) out += " cgroup";
    if (PathExists(dir_ + "/kubelet/pods/" + uid_)) out += " directory";
    auto addresses = ListDir(dir_ + "/ipam/test");
    if (addresses) {
      for (const std::string& name : *addresses) {
        if (name.compare(0, 3, "10.") == 0) out += " " + name;
      }
    }
    return out;
  }
  // Polls until nothing remains, for up to 30 s.
  std::string AwaitNothing() {
    Eventually([this] { return Leftovers().empty(); });
    return Leftovers();
  }

  CrashPlan plan_;
  std::unique_ptr<cri::RuntimeService> runtime_;
  std::unique_ptr<Mounter> crashing_mounter_;
  std::unique_ptr<PodCgroups> crashing_cgroups_;
  std::string uid_;
};

TEST_F(CrashTest, NothingIsLeakedOrRunTwice) {
  struct Case {
    const char* step;
    bool after, starting;
  };
  for (const Case& c : {Case{"EnsureCgroup", true, true},
                        {"RunPodSandbox", true, true},
                        {"MountTmpfs", true, true},
                        {"Bind", true, true},
                        {"CreateContainer main", true, true},
                        {"StartContainer", false, true},
                        {"StartContainer", true, true},
                        {"StopContainer", false, false},
                        {"StopContainer", true, false},
                        {"StopPodSandbox", true, false},
                        {"Unmount", true, false},
                        {"RemoveCgroup", false, false},
                        {"DELETE", true, false},
                        {"RemoveContainer", true, false},
                        {"RemovePodSandbox", false, false}}) {
    SCOPED_TRACE(std::string(c.after ? "after " : "before ") + c.step);
    if (c.starting) plan_.ArmAt(c.step, c.after);
    uid_ = harness_->Create(kPod).metadata().uid();
    if (c.starting) {
      plan_.AwaitDeath();
      std::string ran = Running();
      Revive();
      ASSERT_TRUE(harness_->Await("web", IsPodReady));
      if (!ran.empty()) {
        EXPECT_EQ(Running(), ran);
      }
    }
    ASSERT_TRUE(harness_->Await("web", IsPodReady));
    EXPECT_EQ(harness_->Get("web").status().container_statuses(0).restart_count(), 0);
    if (!c.starting) plan_.ArmAt(c.step, c.after);
    harness_->Delete("web", 1);
    if (!c.starting) Revive();
    ASSERT_TRUE(AwaitGone("web"));
    ASSERT_EQ(AwaitNothing(), "");
  }
}

// Reports its readiness through a probe on a file, and writes a termination message.
std::string DiskPod(const std::string& name, const std::string& finds) {
  return R"json({"metadata":{"name":")json" + name +
         R"json("},"spec":{"terminationGracePeriodSeconds":1,"containers":[{"name":"main",
      "image":"busybox:test","command":["sh","-c","trap 'exit 0' TERM; while true; do sleep 0.1; done"],
      "readinessProbe":{"exec":{"command":["sh","-c",")json" +
         finds + R"json("]},"periodSeconds":1},
      "volumeMounts":[{"name":"disk","mountPath":"/disk"},{"name":"disk","mountPath":"/part","subPath":"part"}]}],
    "volumes":[{"name":"disk","persistentVolumeClaim":{"claimName":"c"}}]}})json";
}

// A block device with a file system: whenever the kubelet dies, the data of one pod is there for the next,
// and the device is free after the last one.
TEST_F(CrashTest, ADeviceIsFormattedOnceAndLetGo) {
  const std::string image = dir_ + "/disk.img", blank(size_t{16} << 20, '\0');
  ASSERT_TRUE(WriteFile(image, blank));
  LoopDevice device(image);
  if (device.path().empty()) GTEST_SKIP() << "no loop device can be had on this machine";
  BindClaim(R"("local":{"path":")" + device.path() + "\"}");
  const std::string mounted = dir_ + "/kubelet/plugins/kubernetes.io/local-volume/mounts/pv-1";
  struct Case {
    const char* step;
    bool after, starting;
  };
  for (const Case& c : {Case{"mkfs.ext4", true, true},
                        {"Mount", true, true},
                        {"Bind", true, true},
                        {"Unmount", true, false},
                        {"UnmountDevice", false, false},
                        {"UnmountDevice", true, false}}) {
    SCOPED_TRACE(std::string(c.after ? "after " : "before ") + c.step);
    {
      auto fresh = OpenFile(device.path(), O_RDWR);
      ASSERT_TRUE(fresh && WriteAll(fresh->get(), blank, device.path()));
    }
    if (c.starting) plan_.ArmAt(c.step, c.after);
    uid_ = harness_->Create(DiskPod("web", "echo hello > /part/x")).metadata().uid();
    if (c.starting) Revive();
    ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
    harness_->Create(DiskPod("other", "read x < /disk/part/x && [ $x = hello ]"));
    ASSERT_TRUE(harness_->Await("other", IsPodReady)) << harness_->Get("other").ShortDebugString();
    EXPECT_TRUE(*mounter_->IsMountPoint(mounted));
    harness_->Delete("other", 1);
    ASSERT_TRUE(AwaitGone("other"));
    EXPECT_TRUE(*mounter_->IsMountPoint(mounted)) << "the first pod has it still";
    if (!c.starting) plan_.ArmAt(c.step, c.after);
    harness_->Delete("web", 1);
    if (!c.starting) Revive();
    ASSERT_TRUE(AwaitGone("web"));
    ASSERT_EQ(AwaitNothing(), "");
    EXPECT_FALSE(PathExists(mounted));
  }
}

}  // namespace
}  // namespace keelson::kubelet
