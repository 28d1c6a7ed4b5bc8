#include "kubelet/podresources/managers.h"

#include <gtest/gtest.h>

#include "kubelet/cm/devices/testing/fake_plugin.h"
#include "kubelet/cm/topology/testing/fake_machine.h"
#include "lib/base/file.h"

namespace keelson::kubelet::podresources {
namespace {

constexpr int64_t kGi = 1 << 30;

class ManagersSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-managers-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    dir_ = name;
    MachineTopology machine = FakeMachine(1, 2, 2, 1, 4 * kGi);
    devices::DeviceManagerOptions devices;
    devices.dir = dir_;
    devices.dial = [this](const std::string& socket,
                          std::stop_token) -> Result<std::unique_ptr<devices::DevicePlugin>> {
      return std::unique_ptr<devices::DevicePlugin>(new devices::FakePlugin(socket, script_));
    };
    devices_ = std::make_unique<devices::DeviceManager>(std::move(devices));
    script_.devices = devices::Devices({"a:1", "!b:1"});
    ASSERT_TRUE(devices_->Connect("example.com/dev", "/plugin.sock"));
    CpuManagerOptions cpus;
    cpus.state_file = dir_ + "/cpu_manager_state";
    cpus.reserved = {0};
    auto cpu_manager = CpuManager::Make(machine, cpus);
    ASSERT_TRUE(cpu_manager) << cpu_manager.error().message();
    cpus_ = std::move(*cpu_manager);
    MemoryManagerOptions memory;
    memory.state_file = dir_ + "/memory_manager_state";
    memory.reserved = {{0, {{"memory", kGi}}}};
    memory.node_reserved = {{"memory", kGi}};
    auto memory_manager = MemoryManager::Make(machine, memory);
    ASSERT_TRUE(memory_manager) << memory_manager.error().message();
    memory_ = std::move(*memory_manager);
  }
  void TearDown() override {
    devices_.reset();
    EXPECT_TRUE(RemoveTree(dir_));
  }

  std::string dir_;
  devices::FakePlugin::Script script_;
  std::unique_ptr<devices::DeviceManager> devices_;
  std::unique_ptr<CpuManager> cpus_;
  std::unique_ptr<MemoryManager> memory_;
};

TEST_F(ManagersSourceTest, TellsWhatEachManagerGave) {
  corev1::Pod pod = GuaranteedPod("p", "2", "1Gi");
  auto& limits = *pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits();
  limits["example.com/dev"].set_string("1");
  const corev1::Container& container = pod.spec().containers(0);
  TopologyHint second{NumaMask(2), true};
  for (ResourceProvider* provider :
       std::initializer_list<ResourceProvider*>{&*devices_, &*cpus_, &*memory_}) {
    ASSERT_FALSE(provider->Allocate(pod, container, second));
  }

  ManagersSource source({*devices_, cpus_.get(), memory_.get()}, {});
  ContainerResources got = source.ResourcesOf(pod, container);
  EXPECT_EQ(got.cpus, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(got.memory.size(), 1u);
  EXPECT_EQ(got.memory[0].type, "memory");
  EXPECT_EQ(got.memory[0].bytes, static_cast<uint64_t>(kGi));
  EXPECT_EQ(got.memory[0].nodes, (std::vector<int64_t>{1}));
  ASSERT_EQ(got.devices.size(), 1u);
  EXPECT_EQ(got.devices[0].id, "a");

  AllocatableResources all = source.Allocatable();
  EXPECT_EQ(all.cpus, (std::vector<int64_t>{1, 2, 3}));
  ASSERT_EQ(all.memory.size(), 2u);
  EXPECT_EQ(all.memory[0].bytes, static_cast<uint64_t>(3 * kGi));
  EXPECT_EQ(all.memory[1].bytes, static_cast<uint64_t>(4 * kGi));
  ASSERT_EQ(all.devices.size(), 1u) << "what is not healthy cannot be had";
}

TEST_F(ManagersSourceTest, WithoutPoliciesNobodyHasCpusOrMemory) {
  corev1::Pod pod = GuaranteedPod("p", "2", "1Gi");
  ManagersSource source({*devices_}, {});
  EXPECT_TRUE(source.ResourcesOf(pod, pod.spec().containers(0)).cpus.empty());
  EXPECT_TRUE(source.Allocatable().cpus.empty());
  EXPECT_TRUE(source.Allocatable().memory.empty());
  EXPECT_EQ(source.Allocatable().devices.size(), 1u);
}

}  // namespace
}  // namespace keelson::kubelet::podresources
