#include "kubelet/cm/devices/manager.h"

#include <gtest/gtest.h>

#include <thread>

#include "kubelet/cm/devices/testing/fake_plugin.h"
#include "lib/base/file.h"

namespace keelson::kubelet::devices {
namespace {

constexpr char kResource[] = "example.com/dev";

class DeviceManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-devices-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    dir_ = name;
    Start();
  }
  void TearDown() override {
    manager_.reset();
    EXPECT_TRUE(RemoveTree(dir_));
  }

  // A new manager, as after a restart of the kubelet.
  void Start(std::function<bool(const std::string&, const std::string&)> running = nullptr) {
    manager_.reset();
    DeviceManagerOptions options;
    options.dir = dir_;
    options.node_sets = {1, 2, 3};
    options.running = std::move(running);
    options.dial = [this](const std::string& socket,
                          std::stop_token) -> Result<std::unique_ptr<DevicePlugin>> {
      return std::unique_ptr<DevicePlugin>(new FakePlugin(socket, script_));
    };
    manager_ = std::make_unique<DeviceManager>(std::move(options), clock_);
  }
  void Connect(const std::vector<std::string>& devices) {
    script_.devices = Devices(devices);
    ASSERT_TRUE(manager_->Connect(kResource, "/plugin.sock"));
  }
  std::string Allocate(const corev1::Pod& pod, const std::string& container, TopologyHint affinity = {}) {
    auto failure = manager_->Allocate(pod, ContainerOf(pod, container), affinity);
    if (!failure) return "";
    EXPECT_EQ(failure->reason, "UnexpectedAdmissionError");
    return failure->message;
  }
  Ids Held(const std::string& uid, const std::string& container) {
    Ids out;
    for (const auto& device : manager_->ContainerDevices(uid, container)) out.insert(device.id);
    return out;
  }
  NodeResource OfNode() { return manager_->NodeResources()[kResource]; }

  std::string dir_;
  FakeClock clock_;
  FakePlugin::Script script_;
  std::unique_ptr<DeviceManager> manager_;
};

TEST_F(DeviceManagerTest, LaterContainersReuseWhatInitContainersHad) {
  Connect({"a", "b", "c", "d"});
  auto pod =
      DevicePod("p", {{"init1", 2}, {"init2", 1}, {"sidecar", 1}, {"init3", 2}, {"app1", 2}, {"app2", 0}});
  for (const char* name : {"init1", "init2", "sidecar", "init3", "app1", "app2"}) {
    EXPECT_EQ(Allocate(pod, name), "") << name;
  }
  EXPECT_EQ(Held("p", "init1"), (Ids{"a", "b"}));
  EXPECT_EQ(Held("p", "init2"), (Ids{"a"}));
  EXPECT_EQ(Held("p", "sidecar"), (Ids{"a"})) << "and keeps it";
  EXPECT_EQ(Held("p", "init3"), (Ids{"b", "c"}));
  EXPECT_EQ(Held("p", "app1"), (Ids{"b", "c"}));
  EXPECT_EQ(Held("p", "app2"), (Ids{}));
  auto other = DevicePod("q", {{"app", 1}});
  EXPECT_EQ(Allocate(other, "app"), "");
  EXPECT_EQ(Held("q", "app"), (Ids{"d"}));
  EXPECT_EQ(manager_->Uids(), (std::set<std::string>{"p", "q"}));
}

TEST_F(DeviceManagerTest, WhatAContainerHasStaysItsOwn) {
  Connect({"a", "b"});
  auto pod = DevicePod("p", {{"app", 1}});
  EXPECT_EQ(Allocate(pod, "app"), "");
  EXPECT_EQ(Allocate(pod, "app"), "");
  EXPECT_EQ(script_.allocations.size(), 1u);
  manager_->Release("p");
  EXPECT_EQ(Held("p", "app"), (Ids{}));
  EXPECT_EQ(Allocate(DevicePod("q", {{"app", 2}}), "app"), "");
}

TEST_F(DeviceManagerTest, SaysWhyItCannotAllocate) {
  auto expect = [&](const corev1::Pod& pod, const std::string& why) {
    EXPECT_EQ(Allocate(pod, "app"), "Allocate failed due to " + why + ", which is unexpected");
  };
  EXPECT_EQ(Allocate(DevicePod("p", {{"app", 1}}), "app"), "") << "nobody's resource";
  Connect({"a", "!b"});
  expect(DevicePod("p", {{"app", 2}}),
         "requested number of devices unavailable for example.com/dev. Requested: 2, Available: 1");
  script_.fail_allocate = Error(Code::kInternal, "rpc error: code = Unknown desc = no");
  expect(DevicePod("p", {{"app", 1}}), "rpc error: code = Unknown desc = no");
  script_.fail_allocate.reset();
  EXPECT_EQ(Allocate(DevicePod("p", {{"app", 1}}), "app"), "") << "the failure gave the device back";
  expect(DevicePod("p", {{"app", 2}}),
         R"(pod "p" container "app" changed request for resource "example.com/dev" from 1 to 2)");
  script_.latest->List(Devices({"!a", "b"}));
  expect(DevicePod("p", {{"app", 1}}),
         "previously allocated devices are no longer healthy; cannot allocate unhealthy devices "
         "example.com/dev");
  script_.latest->Leave();
  expect(DevicePod("q", {{"app", 1}}),
         "no healthy devices present; cannot allocate unhealthy devices example.com/dev");
}

TEST_F(DeviceManagerTest, AsksForThePluginsPreference) {
  script_.options.preferred_allocation = true;
  script_.preferred = {"c"};
  Connect({"a", "b", "c"});
  auto pod = DevicePod("p", {{"init", 1}, {"app", 2}});
  EXPECT_EQ(Allocate(pod, "init"), "");
  EXPECT_EQ(Held("p", "init"), (Ids{"c"}));
  script_.preferred = {"b"};
  EXPECT_EQ(Allocate(pod, "app"), "");
  EXPECT_EQ(Held("p", "app"), (Ids{"b", "c"}));
  EXPECT_EQ(script_.preferences, (std::vector<FakePlugin::Script::Preference>{{{"a", "b", "c"}, {}, 1},
                                                                              {{"a", "b", "c"}, {"c"}, 2}}));
}

TEST_F(DeviceManagerTest, NothingIsGivenTwiceWhileThePluginThinks) {
  script_.options.preferred_allocation = true;
  script_.preferred = {"a"};
  Connect({"a", "b", "c"});
  auto interrupting = DevicePod("q", {{"app", 1}});
  script_.on_preferred = [&] { EXPECT_EQ(Allocate(interrupting, "app"), ""); };
  EXPECT_EQ(Allocate(DevicePod("p", {{"app", 1}}), "app"), "");
  EXPECT_EQ(Held("q", "app"), (Ids{"a"}));
  EXPECT_EQ(Held("p", "app"), (Ids{"b"}));
  auto meanwhile = DevicePod("s", {{"app", 1}});
  script_.on_allocate = [&] {
    EXPECT_EQ(Allocate(meanwhile, "app"),
              "Allocate failed due to requested number of devices unavailable for example.com/dev. "
              "Requested: 1, Available: 0, which is unexpected");
  };
  EXPECT_EQ(Allocate(DevicePod("r", {{"app", 1}}), "app"), "");
}

TEST_F(DeviceManagerTest, PodsThatOnlyReuseDoNotMeet) {
  Connect({"a", "b"});
  auto p = DevicePod("p", {{"init", 1}, {"app", 1}}), q = DevicePod("q", {{"init", 1}, {"app", 1}});
  EXPECT_EQ(Allocate(p, "init"), "");
  EXPECT_EQ(Allocate(q, "init"), "");
  script_.on_allocate = [&] { EXPECT_EQ(Allocate(q, "app"), ""); };
  EXPECT_EQ(Allocate(p, "app"), "");
  EXPECT_EQ(Held("p", "app"), (Ids{"a"}));
  EXPECT_EQ(Held("q", "app"), (Ids{"b"}));
}

TEST_F(DeviceManagerTest, AlignsWithWhatTheTopologyManagerDecided) {
  Connect({"a:0", "b:0", "c:1", "d:1"});
  auto pod = DevicePod("p", {{"app", 1}});
  TopologyHints hints = manager_->Hints(pod, ContainerOf(pod, "app"));
  ASSERT_EQ(hints.count(kResource), 1u);
  EXPECT_EQ(hints[kResource].size(), 3u);
  EXPECT_EQ(Allocate(pod, "app", {NumaMask(2), true}), "");
  EXPECT_EQ(Held("p", "app"), (Ids{"c"}));
  EXPECT_EQ(manager_->ContainerDevices("p", "app")[0].nodes, NumaNodes(std::vector<int64_t>{1}));
  hints = manager_->Hints(pod, ContainerOf(pod, "app"));
  ASSERT_EQ(hints[kResource].size(), 2u) << "of what it has, not of what is free";
  EXPECT_EQ(hints[kResource][0], (TopologyHint{NumaMask(2), true}));

  auto two = DevicePod("q", {{"init", 1}, {"app1", 1}, {"app2", 1}});
  hints = manager_->PodHints(two);
  ASSERT_EQ(hints[kResource].size(), 2u) << "two devices are left on node 0 only";
  EXPECT_EQ(hints[kResource][0], (TopologyHint{NumaMask(1), true}));
  EXPECT_EQ(hints[kResource][1], (TopologyHint{NumaMask(3), false}));
  auto many = DevicePod("r", {{"app", 4}});
  hints = manager_->Hints(many, ContainerOf(many, "app"));
  EXPECT_EQ(hints, (TopologyHints{{kResource, {}}})) << "cannot be met";
  script_.latest->List(Devices({"a", "b"}));
  EXPECT_EQ(manager_->Hints(two, ContainerOf(two, "init")), TopologyHints()) << "no preference";
}

TEST_F(DeviceManagerTest, SurvivesARestart) {
  EXPECT_TRUE(manager_->ShouldResetExtendedResources());
  script_.options.pre_start = true;
  Connect({"a", "b"});
  auto pod = DevicePod("p", {{"app", 1}});
  EXPECT_EQ(Allocate(pod, "app"), "");

  Start();
  EXPECT_FALSE(manager_->ShouldResetExtendedResources());
  EXPECT_EQ(manager_->Uids(), (std::set<std::string>{"p"}));
  EXPECT_EQ(Held("p", "app"), (Ids{"a"}));
  EXPECT_EQ(OfNode(), (NodeResource{0, 0})) << "until its plugin is back";
  EXPECT_EQ(manager_->NodeResources().count(kResource), 1u);
  k8s::ResourceList allocatable{{"cpu", api::Amount::FromInt(4)}, {kResource, api::Amount()}};
  manager_->RaiseAllocatable("other", allocatable);
  EXPECT_EQ(allocatable[kResource].Value(), 0);
  manager_->RaiseAllocatable("p", allocatable);
  EXPECT_EQ(allocatable[kResource].Value(), 1);
  EXPECT_EQ(allocatable["cpu"].Value(), 4);
  cri::ContainerConfig config;
  ASSERT_TRUE(manager_->Configure(pod, ContainerOf(pod, "app"), config, {}));
  ASSERT_EQ(config.devices.size(), 1u);
  EXPECT_EQ(config.devices[0].container_path, "/dev/a");
  EXPECT_EQ(Allocate(pod, "app"),
            "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
            "example.com/dev, which is unexpected");
  Start(
      [](const std::string& uid, const std::string& container) { return uid == "p" && container == "app"; });
  EXPECT_EQ(Allocate(pod, "app"), "") << "it runs";

  Connect({"a", "b"});
  EXPECT_EQ(OfNode(), (NodeResource{2, 2}));
  EXPECT_EQ(Allocate(DevicePod("q", {{"app", 1}}), "app"), "");
  EXPECT_EQ(Held("q", "app"), (Ids{"b"}));
}

TEST_F(DeviceManagerTest, StartsWithABadCheckpoint) {
  ASSERT_TRUE(WriteFile(dir_ + "/kubelet_internal_checkpoint", "{\"Data\":"));
  Start();
  EXPECT_FALSE(manager_->ShouldResetExtendedResources());
  EXPECT_EQ(manager_->Uids(), (std::set<std::string>()));
  Connect({"a"});
  EXPECT_EQ(Allocate(DevicePod("p", {{"app", 1}}), "app"), "");
  Start();
  EXPECT_EQ(Held("p", "app"), (Ids{"a"}));
}

TEST_F(DeviceManagerTest, ConfiguresContainers) {
  Connect({"a", "b"});
  auto pod = DevicePod("p", {{"app", 1}});
  auto configure = [&]() -> std::string {
    cri::ContainerConfig config;
    Result<> done = manager_->Configure(pod, ContainerOf(pod, "app"), config, {});
    if (!done) return done.error().message();
    return config.envs.empty() ? "" : config.envs[0].second;
  };
  EXPECT_EQ(configure(), "a") << "admitted before the plugin came";
  EXPECT_TRUE(script_.pre_starts.empty());
  script_.options.pre_start = true;
  Connect({"a", "b"});
  EXPECT_EQ(configure(), "a");
  EXPECT_EQ(script_.pre_starts, (std::vector<Ids>{{"a"}}));
  script_.fail_pre_start = Error(Code::kInternal, "rpc error: code = Unknown desc = no");
  EXPECT_EQ(configure(),
            "device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = no");
  script_.latest->Leave();
  EXPECT_EQ(
      configure(),
      "device plugin PreStartContainer rpc failed with err: endpoint of example.com/dev has been stopped");
  manager_->Release("p");
  EXPECT_EQ(configure(),
            "no devices found allocated in local cache for pod p, container app, resource example.com/dev");
}

TEST_F(DeviceManagerTest, TellsTheHealthOfWhatContainersHave) {
  Connect({"a", "b"});
  auto pod = DevicePod("p", {{"app", 2}, {"bare", 0}});
  EXPECT_EQ(Allocate(pod, "app"), "");
  corev1::PodStatus status;
  status.add_container_statuses()->set_name("app");
  status.add_container_statuses()->set_name("bare");
  auto health = [&] {
    manager_->FillResourceHealth("p", status);
    std::string out;
    for (const auto& resource : status.container_statuses(0).allocated_resources_status()) {
      for (const auto& device : resource.resources()) {
        out += resource.name() + " " + device.resource_id() + " " + device.health() + "; ";
      }
    }
    return out;
  };
  EXPECT_EQ(health(), "example.com/dev a Healthy; example.com/dev b Healthy; ");
  script_.latest->List(Devices({"a", "!b"}));
  EXPECT_EQ(health(), "example.com/dev a Healthy; example.com/dev b Unhealthy; ");
  EXPECT_EQ(status.container_statuses(1).allocated_resources_status_size(), 0);
  EXPECT_EQ(manager_->AllocatableDevices().size(), 1u);
}

TEST_F(DeviceManagerTest, ValidatesPluginsOfTheRegistry) {
  EXPECT_TRUE(manager_->Validate("example.com/dev", "/x", {"v1alpha1", "v1beta1"}));
  EXPECT_EQ(manager_->Validate("example.com/dev", "/x", {"v1", "v2"}).error().message(),
            "manager version, v1beta1, is not among plugin supported versions [v1 v2]");
  EXPECT_EQ(manager_->Validate("cpu", "/x", {"v1beta1"}).error().message(),
            R"(invalid name of device plugin socket: the ResourceName "cpu" is invalid)");
  script_.devices = Devices({"a"});
  ASSERT_TRUE(manager_->Register(kResource, "/one", {"v1beta1"}, {}));
  ASSERT_TRUE(manager_->Register(kResource, "/two", {"v1beta1"}, {}));
  manager_->Deregister(kResource, "/one");
  EXPECT_EQ(OfNode(), (NodeResource{1, 1})) << "another one has its place";
  manager_->Deregister(kResource, "/two");
  EXPECT_EQ(OfNode(), (NodeResource{1, 0}));
  script_.fail_options = Error(Code::kInternal, "rpc error: code = Unknown desc = no");
  EXPECT_EQ(manager_->Register(kResource, "/two", {"v1beta1"}, {}).error().message(),
            "failed to get device plugin options: rpc error: code = Unknown desc = no");
}

TEST(Inventory, AResourceOutlivesItsPluginForAWhile) {
  using std::chrono::minutes;
  FakePlugin::Script script;
  Inventory inventory;
  SteadyTime now{};
  auto plugin = [&] { return std::make_shared<FakePlugin>("/plugin.sock", script); };
  auto of_node = [&] { return inventory.NodeResources()[kResource]; };

  inventory.Connect(kResource, 1, plugin(), {});
  EXPECT_FALSE(inventory.Find(kResource)) << "nothing has been listed";
  EXPECT_EQ(inventory.List(kResource, 1, Devices({"a", "!b"})), Ids({"a", "b"}));
  EXPECT_EQ(of_node(), (NodeResource{2, 1}));
  EXPECT_EQ(inventory.List(kResource, 1, Devices({"a", "b", "c"})), Ids({"b", "c"}));
  EXPECT_EQ(of_node(), (NodeResource{3, 3}));

  EXPECT_TRUE(inventory.Connect(kResource, 2, plugin(), {})) << "replaced";
  EXPECT_EQ(of_node(), (NodeResource{3, 3})) << "without a gap";
  EXPECT_FALSE(inventory.List(kResource, 1, {}));
  EXPECT_FALSE(inventory.Disconnect(kResource, 1, now));
  EXPECT_TRUE(inventory.Disconnect(kResource, 2, now));
  EXPECT_EQ(of_node(), (NodeResource{3, 0}));
  EXPECT_FALSE(inventory.Expire(now + minutes(4)));
  inventory.Connect(kResource, 3, plugin(), {});
  EXPECT_EQ(of_node(), (NodeResource{3, 0})) << "until it lists";
  EXPECT_FALSE(inventory.Expire(now + minutes(6)));
  EXPECT_TRUE(inventory.List(kResource, 3, Devices({"a"})));
  EXPECT_EQ(of_node(), (NodeResource{1, 1}));

  EXPECT_TRUE(inventory.Disconnect(kResource, 3, now + minutes(10)));
  EXPECT_EQ(inventory.NextExpiry(), now + minutes(15));
  EXPECT_TRUE(inventory.Expire(now + minutes(15)));
  EXPECT_FALSE(inventory.Find(kResource));
  EXPECT_EQ(inventory.NodeResources().count(kResource), 1u) << "of which there are none";
  EXPECT_EQ(of_node(), (NodeResource{0, 0}));
  EXPECT_TRUE(inventory.HealthyDevices().empty());

  inventory.Connect("example.com/brief", 4, plugin(), {});
  EXPECT_TRUE(inventory.Disconnect("example.com/brief", 4, now));
  EXPECT_EQ(inventory.NodeResources().count("example.com/brief"), 0u);
}

}  // namespace
}  // namespace keelson::kubelet::devices
