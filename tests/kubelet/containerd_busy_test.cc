// A containerd shim that does not respond for a while, as on an overloaded machine.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "kubelet/testing/containerd_test.h"
#include "kubelet/testing/gated_runtime.h"

namespace keelson::kubelet {
namespace {

// The shims of the containerd with this directory.
std::vector<pid_t> Shims(const std::string& dir) {
  std::vector<pid_t> found;
  auto names = ListDir("/proc");
  for (const std::string& name : *names) {
    auto command = ReadFile("/proc/" + name + "/cmdline");
    if (command && command->find("containerd-shim") != std::string::npos &&
        command->find(dir) != std::string::npos) {
      found.push_back(std::atoi(name.c_str()));
    }
  }
  return found;
}

// True when all of its threads are stopped: SIGSTOP reaches them one after the other.
bool StandsStill(pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  auto names = ListDir(tasks);
  return names && std::all_of(names->begin(), names->end(), [&](const std::string& name) {
           const std::string stat = ReadFile(tasks + "/" + name + "/stat").value_or("");
           const size_t end = stat.rfind(") ");
           return end != std::string::npos && stat[end + 2] == 'T';
         });
}

// Freezes the shims of the containerd below `dir` once, while their first container is created.
class FrozenShims : public RuntimeGate {
 public:
  explicit FrozenShims(std::string dir) : dir_(std::move(dir)) {}
  Result<> Before(const Call& call, std::stop_token) override {
    if (call.name != "CreateContainer main") return {};
    MutexLock lock(mutex_);
    if (++asked_ > 1) return {};
    frozen_ = Shims(dir_);
    CondVar cv;
    for (pid_t pid : frozen_) ::kill(pid, SIGSTOP);
    for (pid_t pid : frozen_) {
      while (!StandsStill(pid)) cv.wait_for(mutex_, std::chrono::milliseconds(1));
    }
    return {};
  }
  Result<> After(const Call& call) override {
    if (call.name != "CreateContainer main") return {};
    MutexLock lock(mutex_);
    for (pid_t pid : std::exchange(frozen_, {})) thawed_ += ::kill(pid, SIGCONT) == 0;
    return {};
  }
  int thawed() const {
    MutexLock lock(mutex_);
    return thawed_;
  }
  int asked() const {
    MutexLock lock(mutex_);
    return asked_;
  }

 private:
  const std::string dir_;
  mutable Mutex mutex_;
  int asked_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::vector<pid_t> frozen_ KEELSON_GUARDED_BY(mutex_);
  int thawed_ KEELSON_GUARDED_BY(mutex_) = 0;
};

class BusyTest : public ContainerdTest {
 protected:
  void SetUp() override {
    ContainerdTest::SetUp();
    if (!harness_) return;
    harness_->Stop();
    gate_.emplace(dir_);
    runtime_ = GatedRuntime(*cri_.runtime, *gate_);
    harness_ =
        std::make_unique<KubeletHarness>(*runtime_, *cri_.images, *cgroups_, *mounter_, dir_, "10.213.0.1");
    harness_->set_cgroup_v2(linux_cgroups_->unified());
    harness_->Start();
  }
  void TearDown() override {
    harness_.reset();  // before what it uses
    ContainerdTest::TearDown();
  }
  std::optional<FrozenShims> gate_;
  std::unique_ptr<cri::RuntimeService> runtime_;
};

TEST_F(BusyTest, AShimThatDoesNotAnswerIsNoFailureOfTheContainer) {
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{"restartPolicy":"Never",
      "containers":[{"name":"main","image":"busybox:test","command":["sh","-c","true"]}]}})");
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    return pod && (pod->status().phase() == "Succeeded" || pod->status().phase() == "Failed");
  })) << harness_->Get("web").ShortDebugString();
  const corev1::Pod web = harness_->Get("web");
  EXPECT_EQ(web.status().phase(), "Succeeded") << web.ShortDebugString();
  EXPECT_EQ(web.status().container_statuses(0).restart_count(), 0);
  EXPECT_EQ(gate_->thawed(), 1) << "its shim";
  // Before 2.0, containerd waits two seconds for a shim to create a container, and leaves a container that
  // cannot start. Later versions wait longer.
  auto version = cri_.runtime->GetVersion();
  ASSERT_TRUE(version) << version.error().message();
  const std::string& number = version->version;
  const bool waits = std::atoi(number.c_str() + (number.starts_with("v") ? 1 : 0)) >= 2;
  EXPECT_EQ(gate_->asked(), waits ? 1 : 2) << "with containerd " << number;
}

}  // namespace
}  // namespace keelson::kubelet
