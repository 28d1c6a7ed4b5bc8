// CSI volumes of mode Block.
#include "kubelet/volume/csi/devices.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "kubelet/volume/csi/testing/csi_test.h"

namespace keelson::kubelet::csi {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kInternal = 13;

class DevicesTest : public CsiTest {
 protected:
  void SetUp() override {
    CsiTest::SetUp();
    Bind("", R"(,"volumeMode":"Block","accessModes":["ReadWriteOnce"],"mountOptions":["x"])");
    for (const char* uid : {"one", "two"}) {
      mounter_.fake_disks.devices.emplace(Published(uid), linux::DiskContents{});
    }
  }
  corev1::Pod Using(const std::string& uid) {
    corev1::Pod pod = Claiming(uid);
    auto& container = *pod.mutable_spec()->mutable_containers(0);
    container.clear_volume_mounts();
    container.add_volume_devices()->set_name("v");
    return pod;
  }
  std::string Published(const std::string& uid) const {
    return DevicePathsOf(node_.paths, "pv-1", uid).publish;
  }
  std::string Link(const std::string& uid) const {
    return node_.paths.Pod(uid) + "/volumeDevices/kubernetes.io~csi/pv-1";
  }
  std::string Bound(const std::string& uid) const {
    return node_.paths.VolumeDevices(kPluginName, "pv-1") + "/" + uid;
  }
};

TEST_F(DevicesTest, StagedOnceAndPublishedToEachPod) {
  auto paths = manager_->Mount(Using("one"), node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  EXPECT_EQ(paths->at("v").path, Link("one"));
  EXPECT_EQ(std::filesystem::read_symlink(Link("one")),
            dir_ + "/plugins/kubernetes.io/csi/volumeDevices/publish/pv-1/one");
  EXPECT_EQ(mounter_.mounts[Bound("one")], Published("one"));
  ASSERT_EQ(Problem(Using("two")), "");
  ASSERT_EQ(Problem(Using("one")), "");
  EXPECT_EQ(driver_->Calls(), (Strings{"stage vol-1", "publish vol-1 one", "publish vol-1 two"}));
  EXPECT_THAT(driver_->LastRequest("NodePublishVolume"),
              AllOf(HasSubstr("block { }"), Not(HasSubstr("mount_flags")),
                    HasSubstr("staging_target_path: \"" + dir_ +
                              "/plugins/kubernetes.io/csi/volumeDevices/staging/pv-1\"")));
  ASSERT_TRUE(Remove("one"));
  EXPECT_EQ(driver_->Calls(), Strings{"unpublish vol-1 one"});
  ASSERT_TRUE(Remove("two"));
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 two", "unstage vol-1"}));
  EXPECT_FALSE(PathExists(node_.paths.Pod("two")));
  EXPECT_EQ(*ListDir(dir_ + "/plugins/kubernetes.io/csi/volumeDevices"), (Strings{"publish", "staging"}));
  EXPECT_TRUE(mounter_.mounts.empty());
}

TEST_F(DevicesTest, FailuresAreToldAndWhatWasDoneIsUndone) {
  driver_->Fail("NodePublishVolume", kInternal, "no disk");
  EXPECT_EQ(Problem(Using("one")),
            "MapVolume.SetUpDevice failed for volume \"pv-1\" : rpc error: code = Internal desc = no disk");
  EXPECT_EQ(driver_->Calls(), (Strings{"stage vol-1", "publish vol-1 one"}));
  EXPECT_NE(Problem(Using("one")), "");
  EXPECT_TRUE(driver_->Calls().empty()) << "after a wait";
  ASSERT_TRUE(Remove("one"));
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 one", "unstage vol-1"}));
  mounter_.fake_disks.devices.clear();
  EXPECT_EQ(Problem(Using("two")), "MapVolume.SetUpDevice failed for volume \"pv-1\" : path \"" +
                                       Published("two") + "\" is not a block device");
  ASSERT_TRUE(Remove("two"));
}

TEST_F(DevicesTest, APodEndsBeforeItsDriverHasUnstaged) {
  ASSERT_EQ(Problem(Using("one")), "");
  driver_->Fail("NodeUnstageVolume", kInternal, "busy", 100);
  ASSERT_TRUE(manager_->Unmount(node_.paths, "one"));
  EXPECT_FALSE(manager_->RemoveUnmounted(node_.paths, "one"));
  driver_->Calls();
  ASSERT_EQ(Problem(Using("two")), "");
  EXPECT_EQ(driver_->Calls(), (Strings{"stage vol-1", "publish vol-1 two"}));
  ASSERT_TRUE(manager_->RemoveLeftBehind(node_.paths));
  EXPECT_EQ(driver_->Calls(), Strings{}) << "the next pod needs the stage";
  EXPECT_FALSE(PathExists(node_.paths.Pod("one")));
  driver_->Fail("NodeUnstageVolume", kInternal, "busy", 0);
  ASSERT_TRUE(Remove("two"));
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 two", "unstage vol-1"}));
}

TEST_F(DevicesTest, GrowsOnTheNode) {
  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"});
  Grow();
  ASSERT_EQ(Problem(Using("one")), "");
  EXPECT_THAT(driver_->LastRequest("NodeExpandVolume"),
              AllOf(HasSubstr("volume_path: \"" + Published("one") + "\""), HasSubstr("block { }")));
  EXPECT_EQ(objects_.expanded, Strings{"c"});
}

TEST_F(DevicesTest, ALaterKubeletFindsThem) {
  ASSERT_EQ(Problem(Using("one")), "");
  Restart();
  EXPECT_EQ(manager_->VolumesInUse(), Strings{kAttached});
  ASSERT_EQ(Problem(Using("two")), "");
  Restart();
  driver_->Calls();
  ASSERT_TRUE(Remove("one"));
  ASSERT_TRUE(Remove("two"));
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 one", "unpublish vol-1 two", "unstage vol-1"}));
  EXPECT_TRUE(manager_->VolumesInUse().empty());
}

// The kubelet is killed within each call: its successor undoes what was done.
TEST_F(DevicesTest, EachCallMayBeTheLastOfAKubelet) {
  for (const char* method : {"NodeStageVolume", "NodePublishVolume"}) {
    SCOPED_TRACE(method);
    driver_->Fail(method, 14, "killed", 1, true);
    EXPECT_NE(Problem(Using("one")), "");
    Restart();
    ASSERT_TRUE(Remove("one"));
    EXPECT_TRUE(driver_->Staged().empty());
    EXPECT_TRUE(driver_->Published().empty());
  }
  for (const char* method : {"NodeUnpublishVolume", "NodeUnstageVolume"}) {
    SCOPED_TRACE(method);
    ASSERT_EQ(Problem(Using("one")), "");
    driver_->Fail(method, 14, "killed", 1, true);
    EXPECT_FALSE(Remove("one"));
    Restart();
    ASSERT_TRUE(Remove("one"));
    EXPECT_TRUE(driver_->Staged().empty());
    EXPECT_FALSE(PathExists(node_.paths.Pod("one")));
  }
}

}  // namespace
}  // namespace keelson::kubelet::csi
