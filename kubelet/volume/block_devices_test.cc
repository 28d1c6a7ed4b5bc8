#include "kubelet/volume/block_devices.h"

#include <filesystem>

#include "kubelet/volume/testing/volume_test.h"

namespace keelson::kubelet {
namespace {

class BlockDevicesTest : public VolumeTest {
 protected:
  std::string Link(const std::string& uid) const {
    return node_.paths.Pod(uid) + "/volumeDevices/kubernetes.io~local-volume/pv-1";
  }
  std::string Bound(const std::string& uid) const {
    return dir_ + "/plugins/kubernetes.io~local-volume/volumeDevices/pv-1/" + uid;
  }
  Result<std::string> Map(const std::string& uid, const std::string& device = "/dev/loop7") {
    return MapDevice(mounter_, node_.paths, {uid, "kubernetes.io/local-volume", "pv-1", device});
  }
};

TEST_F(BlockDevicesTest, EachPodHasALinkAndAMount) {
  ASSERT_EQ(*Map("u"), Link("u"));
  ASSERT_EQ(*Map("w"), Link("w"));
  EXPECT_EQ(std::filesystem::read_symlink(Link("u")), "/dev/loop7");
  EXPECT_EQ(mounter_.mounts[Bound("u")], "/dev/loop7");
  mounter_.mounts[Bound("u")] = "as it was";
  ASSERT_TRUE(Map("u"));
  EXPECT_EQ(mounter_.mounts[Bound("u")], "as it was") << "again changes nothing";

  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
  EXPECT_EQ(mounter_.mounts.count(Bound("u")), 0u);
  EXPECT_EQ(mounter_.mounts.count(Bound("w")), 1u);
  ASSERT_TRUE(manager_->Remove(node_.paths, "w"));
  EXPECT_FALSE(PathExists(dir_ + "/plugins/kubernetes.io~local-volume/volumeDevices/pv-1"));
}

TEST_F(BlockDevicesTest, WhatAKillLeavesIsFound) {
  ASSERT_TRUE(Map("u"));
  mounter_.mounts.clear();  // before the mount
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  EXPECT_FALSE(PathExists(Bound("u")));
  ASSERT_TRUE(UnmapDevices(mounter_, node_.paths, "never")) << "absent is fine";
}

TEST_F(BlockDevicesTest, ClaimsOfModeBlock) {
  objects_.Put<corev1::PersistentVolumeClaim>(
      R"({"metadata":{"name":"c","namespace":"n","uid":"cu"},"spec":{"volumeName":"pv-1"},"status":{"phase":"Bound"}})");
  auto pod = PodWith(R"({"name":"v","persistentVolumeClaim":{"claimName":"c"}})");
  auto& container = *pod.mutable_spec()->mutable_containers(0);
  container.clear_volume_mounts();
  container.add_volume_devices()->set_name("v");
  struct Case {
    std::string source, problem;
  };
  for (const Case& c : {
           Case{R"("local":{"path":")" + dir_ + "\"}",
                "MapVolume.SetUpDevice failed for volume \"pv-1\" : path \"" + dir_ +
                    "\" is not a block device"},
           {R"("nfs":{"server":"s","path":"/x"})",
            "MapVolume.SetUpDevice failed for volume \"pv-1\" : failed to find BlockVolumeMapper plugin. "
            "Volume plugin "
            "is nil."},
           {R"("local":{"path":"/dev/null-device"})",
            "MapVolume.SetUpDevice failed for volume \"pv-1\" : stat /dev/null-device: No such file or "
            "directory"},
       }) {
    objects_.Put<corev1::PersistentVolume>(
        R"({"metadata":{"name":"pv-1"},"spec":{"volumeMode":"Block","claimRef":{"uid":"cu"},)" + c.source +
        "}}");
    EXPECT_EQ(Problem(pod), c.problem);
  }
}

}  // namespace
}  // namespace keelson::kubelet
