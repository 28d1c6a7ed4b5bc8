// The managers of CPUs, memory and devices behind their one face, on a machine of 16 CPUs that is not there.
#include "kubelet/cm/container_manager.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "kubelet/cm/devices/testing/device_plugin_stub.h"
#include "kubelet/cm/devices/testing/fake_plugin.h"
#include "kubelet/cm/topology/testing/fake_machine.h"
#include "kubelet/cri/testing/fake_runtime.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

constexpr int64_t kMemory = int64_t{16} << 30;

class ContainerManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-resources-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    settings_.flags.root_dir = name;
    settings_.config.cpu_manager_policy = "static";
    reservations_.system = {{"cpu", "1"}};
    Start();
  }
  void TearDown() override {
    Stop();
    EXPECT_TRUE(RemoveTree(settings_.flags.root_dir));
  }

  void Start() {
    auto made = ContainerManager::Make(settings_, reservations_, runtime_, FakeMachine(2, 1, 4, 2), kMemory,
                                       Clock::Real());
    ASSERT_TRUE(made) << made.error().message();
    manager_ = std::move(*made);
    manager_->Connect({[] { return std::vector<ContainerManager::PodPtr>(); },
                       [](const std::string&, const std::string&) { return ContainerManager::PodPtr(); },
                       [](const std::string&) { return std::shared_ptr<const PodRuntimeStatus>(); },
                       [this] {
                         MutexLock lock(mutex_);
                         changed_.notify_all();
                       },
                       [](const std::string&) {}});
    thread_ = std::jthread([this](std::stop_token stop) {
      ServiceGroup group;
      manager_->AddServices(group);
      group.Add(
          {"up", {"device-plugins"}, [this](std::stop_token token, ServiceGroup::Ready ready) -> Result<> {
             ready();
             MutexLock lock(mutex_);
             up_ = true;
             changed_.notify_all();
             changed_.wait(mutex_, token, [] { return false; });
             up_ = false;
             return {};
           }});
      EXPECT_TRUE(group.Run(stop));
    });
    MutexLock lock(mutex_);
    while (!up_) changed_.wait(mutex_);
  }
  void Stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }
  // "" or why the pod is refused.
  std::string Admit(const corev1::Pod& pod) {
    auto failure = manager_->Admit(pod);
    return failure ? failure->reason + ": " + failure->message : "";
  }
  std::string CpusOf(const corev1::Pod& pod) {
    cri::ContainerConfig config;
    EXPECT_TRUE(manager_->ConfigureContainer(pod, pod.spec().containers(0), config, {}));
    return config.resources.cpuset_cpus;
  }
  bool AwaitDevices(const std::string& resource, int64_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    for (;;) {
      auto all = manager_->DevicePluginResources();
      if (all.count(resource) && all[resource].allocatable == count) return true;
      if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) return false;
    }
  }

  Settings settings_;
  Reservations reservations_;
  cri::FakeRuntime runtime_;
  Mutex mutex_;
  CondVar changed_;
  bool up_ KEELSON_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ContainerManager> manager_;
  std::jthread thread_;
};

TEST_F(ContainerManagerTest, AGuaranteedPodHasItsCpusUntilItGoes) {
  EXPECT_TRUE(manager_->static_cpus());
  EXPECT_FALSE(manager_->static_memory());
  const corev1::Pod own = GuaranteedPod("own", "2", "1Mi"), part = GuaranteedPod("part", "500m", "1Mi"),
                    many = GuaranteedPod("many", "15", "1Mi");
  EXPECT_EQ(Admit(own), "");
  EXPECT_EQ(CpusOf(own), "1,9");
  EXPECT_EQ(CpusOf(part), "0,2-8,10-15");
  EXPECT_EQ(Admit(many),
            "UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: "
            "requested=15, available=13, which is unexpected");
  Stop();
  Start();  // a new kubelet
  EXPECT_EQ(CpusOf(own), "1,9");
  EXPECT_EQ(Admit(own), "") << "it has them already";
  EXPECT_EQ(CpusOf(own), "1,9");
  manager_->Release("own");
  EXPECT_EQ(CpusOf(part), "0-15");
  EXPECT_EQ(Admit(many), "");
  manager_->RemoveStaleState({"other"});
  EXPECT_EQ(CpusOf(part), "0-15") << "of pods that are no more, nothing stays";
}

TEST_F(ContainerManagerTest, DevicesOfPluginsAreGivenAsWell) {
  constexpr char kDevice[] = "example.com/dev";
  const std::string dir = settings_.flags.root_dir + "/device-plugins";
  devices::DevicePluginStub plugin(dir + "/plugin.sock");
  plugin.SetDevices(devices::Devices({"a", "b"}));
  ASSERT_EQ(plugin.Register(dir + "/kubelet.sock", kDevice), "");
  ASSERT_TRUE(AwaitDevices(kDevice, 2));
  k8s::ResourceList allocatable;
  manager_->UpdatePluginResources("one", allocatable);
  EXPECT_EQ(k8s::AmountOf(allocatable, kDevice).Value(), 2);
  const corev1::Pod one = devices::DevicePod("one", {{"main", 2}}),
                    other = devices::DevicePod("other", {{"main", 1}});
  EXPECT_EQ(Admit(one), "");
  EXPECT_EQ(plugin.allocations(), 1);
  EXPECT_NE(Admit(other), "") << "both are taken";
  manager_->Release("one");
  EXPECT_EQ(Admit(other), "");
}

TEST_F(ContainerManagerTest, SettingsThatContradictEachOtherAreRefused) {
  Stop();
  reservations_.system.clear();
  auto made = ContainerManager::Make(settings_, reservations_, runtime_, FakeMachine(1, 1, 2, 1), kMemory,
                                     Clock::Real());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kInvalid) << made.error().message();
  settings_.config.reserved_system_cpus = "1,2";
  EXPECT_EQ(ContainerManager::Make(settings_, reservations_, runtime_, FakeMachine(1, 1, 2, 1), kMemory,
                                   Clock::Real())
                .error()
                .message(),
            "invalid cpuset \"1,2\" specified by --reserved-cpus");
}

}  // namespace
}  // namespace keelson::kubelet
