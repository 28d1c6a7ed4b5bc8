#include "kubelet/cm/devices/checkpoint.h"

#include <gtest/gtest.h>

namespace keelson::kubelet::devices {
namespace {

TEST(Checkpoint, ReadsWhatItWrote) {
  PodDevices pods;
  Allocation allocation;
  allocation.devices = {{"a", {0}}, {"b", {0, 1}}, {"c", {}}};
  allocation.grant.envs = {{"NAME", "value"}};
  allocation.grant.annotations = {{"note", "x"}};
  allocation.grant.mounts.push_back({"/in", "/out", true});
  allocation.grant.devices = {{"/dev/in", "/dev/out", "rwm"}};
  allocation.grant.cdi_devices = {"example.com/dev=a"};
  pods.Insert("uid", "main", "example.com/dev", allocation);

  auto read = DecodeCheckpoint(EncodeCheckpoint(pods, {{"example.com/dev", {"a"}}, {"example.com/x", {}}}));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->resources, (Ids{"example.com/dev", "example.com/x"}));
  const Allocation* found = read->pods.Find("uid", "main", "example.com/dev");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->devices, allocation.devices);
  EXPECT_EQ(found->grant.envs, allocation.grant.envs);
  EXPECT_EQ(found->grant.annotations, allocation.grant.annotations);
  EXPECT_EQ(found->grant.cdi_devices, allocation.grant.cdi_devices);
  ASSERT_EQ(found->grant.mounts.size(), 1u);
  EXPECT_EQ(found->grant.mounts[0].host_path, "/out");
  EXPECT_TRUE(found->grant.mounts[0].readonly);
  ASSERT_EQ(found->grant.devices.size(), 1u);
  EXPECT_EQ(found->grant.devices[0].permissions, "rwm");
}

TEST(Checkpoint, ReadsUpstreams) {
  auto read = DecodeCheckpoint(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid","ContainerName":"main","ResourceName":"example.com/dev",)"
      R"("DeviceIDs":{"-1":["a"],"1":["b"]},"AllocResp":"CggKAUESA3h5eg=="}],)"
      R"("RegisteredDevices":{"example.com/dev":["a","b"]}},"Checksum":123456})");
  ASSERT_TRUE(read) << read.error().message();
  const Allocation* found = read->pods.Find("uid", "main", "example.com/dev");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->devices, (std::map<std::string, std::vector<int64_t>>{{"a", {}}, {"b", {1}}}));
  EXPECT_EQ(found->grant.envs, (std::map<std::string, std::string>{{"A", "xyz"}}));
  EXPECT_TRUE(DecodeCheckpoint(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1})"));
}

TEST(Checkpoint, RefusesWhatItDoesNotUnderstand) {
  for (
      const char* text :
      {"", "{", "[]", "{}", R"({"Data":[]})", R"({"Data":{"PodDeviceEntries":[1]}})",
       R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r"}]}})",
       R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","AllocResp":"",)"
       R"("DeviceIDs":{"x":["a"]}}]}})",
       R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","AllocResp":"?",)"
       R"("DeviceIDs":{}}]}})"}) {
    EXPECT_FALSE(DecodeCheckpoint(text)) << text;
  }
}

TEST(AddGrants, FirstPluginWinsAndThePodsOwnCome) {
  PodDevices::Allocations allocations;
  Grant& one = allocations["example.com/a"].grant;
  one.envs = {{"X", "1"}, {"Y", "1"}};
  one.mounts.push_back({"/m", "/one"});
  one.devices = {{"/dev/d", "/dev/one", "r"}};
  one.cdi_devices = {"v/c=1"};
  one.annotations = {{"mine", "plugin"}, {"other", "plugin"}};
  Grant& two = allocations["example.com/b"].grant;
  two.envs = {{"X", "2"}, {"Z", "2"}};
  two.mounts = {{"/m", "/two"}, {"/n", "/two"}};
  two.devices = {{"/dev/d", "/dev/two", "r"}, {"/dev/e", "/dev/two", "r"}};
  two.cdi_devices = {"v/c=1", "v/c=2"};
  cri::ContainerConfig config;
  config.envs = {{"X", "pod"}};
  config.mounts.push_back({"/n", "/pod"});
  config.annotations = {{"mine", "kubelet"}};
  AddGrants(allocations, config);
  EXPECT_EQ(config.envs, (std::vector<std::pair<std::string, std::string>>{
                             {"X", "1"}, {"Y", "1"}, {"Z", "2"}, {"X", "pod"}}));
  ASSERT_EQ(config.mounts.size(), 3u);
  EXPECT_EQ(config.mounts[0].host_path, "/one");
  EXPECT_EQ(config.mounts[2].host_path, "/pod");
  ASSERT_EQ(config.devices.size(), 2u);
  EXPECT_EQ(config.devices[0].host_path, "/dev/one");
  EXPECT_EQ(config.cdi_devices, (std::vector<std::string>{"v/c=1", "v/c=2"}));
  EXPECT_EQ(config.annotations, (cri::Labels{{"mine", "kubelet"}, {"other", "plugin"}}));
}

}  // namespace
}  // namespace keelson::kubelet::devices
