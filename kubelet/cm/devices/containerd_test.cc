// From a plugin's registration to its device in a container of a real containerd.
#include <gtest/gtest.h>
#include <unistd.h>

#include <latch>
#include <thread>

#include "kubelet/cm/devices/manager.h"
#include "kubelet/cm/devices/registration.h"
#include "kubelet/cm/devices/testing/device_plugin_stub.h"
#include "kubelet/cm/devices/testing/fake_plugin.h"
#include "kubelet/cri/grpc_runtime.h"
#include "kubelet/testing/containerd.h"
#include "lib/base/file.h"
#include "lib/linux/cgroup.h"

namespace keelson::kubelet::devices {
namespace {

class DevicesInContainerd : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = Containerd::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    auto cgroups = linux::Cgroups::Detect();
    if (!cgroups) GTEST_SKIP() << cgroups.error().message();
    cgroups_.emplace(*cgroups);
    char name[] = "/tmp/kubelet_devices.XXXXXX";
    dir_ = ::mkdtemp(name);
    auto started = Containerd::Start(dir_);
    ASSERT_TRUE(started) << started.error().message();
    containerd_ = std::move(*started);
    cri_ = cri::NewGrpcServices({containerd_->socket()});
    ASSERT_TRUE(MakeDirs(dir_ + "/logs"));

    DeviceManagerOptions options;
    options.dir = dir_ + "/device-plugins";
    manager_ = std::make_unique<DeviceManager>(std::move(options));
    std::latch ready(1);
    thread_ = std::jthread(
        [&](std::stop_token stop) { EXPECT_TRUE(manager_->Run(stop, [&] { ready.count_down(); })); });
    ready.wait();
  }
  void TearDown() override {
    thread_ = {};
    manager_.reset();
    containerd_.reset();
    if (cgroups_) {
      EXPECT_TRUE(cgroups_->Remove(root_));
    }
  }

  // What `command` prints in a container that has what the manager adds to its configuration.
  Result<std::string> RunIn(const corev1::Pod& pod, const std::string& container,
                            const std::vector<std::string>& command) {
    cri::SandboxConfig sandbox;
    sandbox.metadata = {pod.metadata().name(), pod.metadata().uid(), "default", 0};
    sandbox.log_directory = dir_ + "/logs";
    sandbox.cgroup_parent = root_;
    sandbox.namespaces.network = cri::NamespaceMode::kNode;
    KEELSON_ASSIGN_OR_RETURN(std::string sandbox_id, cri_.runtime->RunPodSandbox(sandbox, ""));
    cri::ContainerConfig config;
    config.name = container;
    config.image = config.user_specified_image = "docker.io/library/busybox:test";
    config.command = {"sh", "-c", "while true; do sleep 0.1; done"};
    config.log_path = container + ".log";
    KEELSON_RETURN_IF_ERROR(manager_->Configure(pod, ContainerOf(pod, container), config, {}));
    config.cdi_devices.clear();  // would need files that describe them
    KEELSON_ASSIGN_OR_RETURN(std::string id, cri_.runtime->CreateContainer(sandbox_id, config, sandbox));
    KEELSON_RETURN_IF_ERROR(cri_.runtime->StartContainer(id));
    auto result = cri_.runtime->ExecSync(id, command, std::chrono::seconds(10));
    KEELSON_RETURN_IF_ERROR(cri_.runtime->StopPodSandbox(sandbox_id));
    KEELSON_RETURN_IF_ERROR(cri_.runtime->RemovePodSandbox(sandbox_id));
    if (!result) return result.error();
    return result->output;
  }

  std::string dir_;
  const std::string root_ = "/keelson-devices-" + std::to_string(::getpid());
  std::optional<linux::Cgroups> cgroups_;
  std::unique_ptr<Containerd> containerd_;
  cri::GrpcServices cri_;
  std::unique_ptr<DeviceManager> manager_;
  std::jthread thread_;
};

TEST_F(DevicesInContainerd, AContainerGetsItsDevice) {
  DevicePluginStub plugin(dir_ + "/device-plugins/plugin.sock");
  plugin.SetDevices(Devices({"one", "two"}));
  ASSERT_EQ(plugin.Register(dir_ + "/device-plugins/" + kRegistrationSocket, "example.com/dev"), "");
  while (manager_->NodeResources()["example.com/dev"].allocatable < 2) std::this_thread::yield();
  auto pod = DevicePod("with-device", {{"main", 1}});
  ASSERT_FALSE(manager_->Allocate(pod, ContainerOf(pod, "main"), {}));
  auto output =
      RunIn(pod, "main", {"sh", "-c", "echo $DEVICES; test -c /dev/two && echo x > /dev/two && echo ok"});
  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(*output, "two\nok\n");
}

}  // namespace
}  // namespace keelson::kubelet::devices
