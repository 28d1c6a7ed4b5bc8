// Plugins behind real sockets.
#include "kubelet/cm/devices/registration.h"

#include <gtest/gtest.h>

#include <thread>

#include "kubelet/cm/devices/manager.h"
#include "kubelet/cm/devices/testing/device_plugin_stub.h"
#include "kubelet/cm/devices/testing/fake_plugin.h"
#include "lib/base/file.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet::devices {
namespace {

constexpr char kResource[] = "example.com/dev";

class RegistrationTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-devices-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    dir_ = std::string(name) + "/device-plugins";
    kubelet_socket_ = dir_ + "/" + kRegistrationSocket;
    Start();
  }
  void TearDown() override {
    Stop();
    EXPECT_TRUE(RemoveTree(dir_.substr(0, dir_.rfind('/'))));
  }

  void Start() {
    DeviceManagerOptions options;
    options.dir = dir_;
    options.resources_changed = [this] {
      MutexLock lock(mutex_);
      changed_.notify_all();
    };
    options.health_changed = [this](const std::set<std::string>& uids) {
      MutexLock lock(mutex_);
      told_.insert(uids.begin(), uids.end());
      changed_.notify_all();
    };
    manager_ = std::make_unique<DeviceManager>(std::move(options), clock_);
    bool ready = false;
    thread_ = std::jthread([this, &ready](std::stop_token stop) {
      EXPECT_TRUE(manager_->Run(stop, [&] {
        MutexLock lock(mutex_);
        ready = true;
        changed_.notify_all();
      }));
    });
    MutexLock lock(mutex_);
    while (!ready) changed_.wait(mutex_);
  }
  void Stop() {
    if (!manager_) return;
    thread_.request_stop();
    thread_.join();
    manager_.reset();
  }

  // Whether it comes to that within a while.
  bool Await(const std::function<bool()>& condition) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    while (!condition()) {
      if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) return condition();
    }
    return true;
  }
  bool AwaitResource(const std::string& resource, NodeResource expected) {
    return Await([&] {
      auto all = manager_->NodeResources();
      return all.count(resource) && all[resource] == expected;
    });
  }

  std::string dir_, kubelet_socket_;
  FakeClock clock_;
  Mutex mutex_;
  CondVar changed_;
  std::set<std::string> told_;  // behind mutex_
  std::unique_ptr<DeviceManager> manager_;
  std::jthread thread_;
};

TEST_F(RegistrationTest, FromRegistrationToTheContainer) {
  DevicePluginStub plugin(dir_ + "/plugin.sock");
  plugin.SetDevices(Devices({"a:0", "b:1", "!c"}));
  ASSERT_EQ(plugin.Register(kubelet_socket_, kResource), "");
  ASSERT_TRUE(AwaitResource(kResource, {3, 2}));
  auto pod = DevicePod("p", {{"app", 1}});
  EXPECT_FALSE(manager_->Allocate(pod, ContainerOf(pod, "app"), {}));
  cri::ContainerConfig config;
  ASSERT_TRUE(manager_->Configure(pod, ContainerOf(pod, "app"), config, {}));
  ASSERT_EQ(config.devices.size(), 1u);
  EXPECT_EQ(config.devices[0].container_path, "/dev/b") << "the plugin's preference";
  EXPECT_EQ(config.cdi_devices, (std::vector<std::string>{"example.com/dev=b"}));

  plugin.SetDevices(Devices({"a:0", "!b:1"}));
  EXPECT_TRUE(AwaitResource(kResource, {2, 1}));
  EXPECT_TRUE(Await([&] { return told_.count("p") == 1; }));
  std::string text = metrics::Print();
  EXPECT_NE(text.find("kubelet_device_plugin_registration_total{resource_name=\"example.com/dev\"} "),
            std::string::npos);
  EXPECT_NE(
      text.find("kubelet_device_plugin_alloc_duration_seconds_count{resource_name=\"example.com/dev\"} "),
      std::string::npos);
}

TEST_F(RegistrationTest, RefusesInUpstreamsWords) {
  DevicePluginStub plugin(dir_ + "/plugin.sock");
  EXPECT_EQ(
      plugin.Register(kubelet_socket_, kResource, "v1alpha3"),
      R"(requested API version "v1alpha3" is not supported by kubelet. Supported version is ["v1beta1"])");
  for (const char* name : {"cpu", "kubernetes.io/x", "requests.example.com/x", "example.com/", "a/b/c", ""}) {
    EXPECT_EQ(plugin.Register(kubelet_socket_, name),
              "the ResourceName \"" + std::string(name) + "\" is invalid");
  }
  EXPECT_TRUE(manager_->NodeResources().empty());
}

TEST_F(RegistrationTest, PluginsDieAndComeBack) {
  auto plugin = std::make_unique<DevicePluginStub>(dir_ + "/plugin.sock");
  plugin->SetDevices(Devices({"a", "broken"}));
  ASSERT_EQ(plugin->Register(kubelet_socket_, kResource), "");
  ASSERT_TRUE(AwaitResource(kResource, {2, 2}));
  auto pod = DevicePod("p", {{"app", 2}});
  auto failure = manager_->Allocate(pod, ContainerOf(pod, "app"), {});
  ASSERT_TRUE(failure);
  EXPECT_EQ(
      failure->message,
      "Allocate failed due to rpc error: code = Unknown desc = cannot set up broken, which is unexpected");
  plugin.reset();
  EXPECT_TRUE(AwaitResource(kResource, {2, 0}));
  clock_.Advance(std::chrono::minutes(4));
  plugin = std::make_unique<DevicePluginStub>(dir_ + "/plugin.sock");
  plugin->SetDevices(Devices({"a"}));
  ASSERT_EQ(plugin->Register(kubelet_socket_, kResource), "");
  EXPECT_TRUE(AwaitResource(kResource, {1, 1}));
  plugin.reset();
  EXPECT_TRUE(AwaitResource(kResource, {1, 0}));
  clock_.Advance(kStopGracePeriod);
  EXPECT_TRUE(AwaitResource(kResource, {0, 0}));
}

TEST_F(RegistrationTest, IsUnhealthyWhereItCannotBeServed) {
  Stop();
  ASSERT_TRUE(MakeDirs(kubelet_socket_ + "/in the way"));
  Start();
  for (int i = 0; i < 4; ++i) {
    clock_.AwaitWaiters(1);
    EXPECT_TRUE(manager_->CheckServing());
    clock_.Advance(std::chrono::seconds(1));
  }
  clock_.AwaitWaiters(1);
  auto unhealthy = manager_->CheckServing();
  ASSERT_FALSE(unhealthy);
  EXPECT_EQ(unhealthy.error().message(),
            "device plugin registration gRPC server failed and no device plugins can register");
  ASSERT_TRUE(RemoveTree(kubelet_socket_));
  clock_.Advance(std::chrono::seconds(1));
  clock_.AwaitWaiters(1);
  EXPECT_TRUE(manager_->CheckServing());
}

TEST_F(RegistrationTest, AKubeletThatStartsRemovesSocketsAndWaitsForPlugins) {
  DevicePluginStub plugin(dir_ + "/plugin.sock");
  plugin.SetDevices(Devices({"a"}));
  ASSERT_EQ(plugin.Register(kubelet_socket_, kResource), "");
  ASSERT_TRUE(AwaitResource(kResource, {1, 1}));
  Stop();
  ASSERT_TRUE(WriteFile(dir_ + "/notes", "kept"));
  ASSERT_TRUE(MakeDirs(dir_ + "/folder"));
  Start();
  EXPECT_EQ(*ListDir(dir_), (std::vector<std::string>{"folder", kRegistrationSocket,
                                                      "kubelet_internal_checkpoint", "notes"}));
  EXPECT_EQ(manager_->NodeResources()[kResource], (NodeResource{0, 0}));
  clock_.Advance(kStopGracePeriod + std::chrono::seconds(1));
  DevicePluginStub again(dir_ + "/again.sock");
  again.SetDevices(Devices({"a", "b"}));
  ASSERT_EQ(again.Register(kubelet_socket_, kResource), "");
  EXPECT_TRUE(AwaitResource(kResource, {2, 2}));
}

TEST_F(RegistrationTest, ManyAtOnce) {
  constexpr int kPlugins = 6;
  std::vector<std::unique_ptr<DevicePluginStub>> plugins;
  for (int i = 0; i < kPlugins; ++i) {
    plugins.push_back(std::make_unique<DevicePluginStub>(dir_ + "/plugin" + std::to_string(i) + ".sock"));
    plugins.back()->SetDevices(Devices({"a" + std::to_string(i)}));
  }
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kPlugins; ++i) {
      threads.emplace_back([&, i] {
        EXPECT_EQ(plugins[i]->Register(kubelet_socket_, "example.com/own" + std::to_string(i)), "");
        EXPECT_EQ(plugins[i]->Register(kubelet_socket_, kResource), "") << "all the same";
      });
    }
  }
  for (int i = 0; i < kPlugins; ++i) {
    EXPECT_TRUE(AwaitResource("example.com/own" + std::to_string(i), {1, 1}));
  }
  EXPECT_TRUE(AwaitResource(kResource, {1, 1})) << "the last has it";
}

}  // namespace
}  // namespace keelson::kubelet::devices
